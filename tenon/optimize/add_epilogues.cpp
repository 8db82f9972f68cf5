#include "tenon/optimize/add_epilogues.h"

#include <algorithm>
#include <cmath>

#include "tenon/optimize/anchors.h"
#include "tenon/optimize/compact.h"
#include "tenon/optimize/index.h"
#include "tenon/optimize/rewrite.h"

namespace tenon::optimize {
namespace {

using loop::BufferId;
using loop::Compute;
using loop::ExprId;
using loop::ExprNode;
using loop::Fn;

class Epilogues {
 public:
  Epilogues(loop::Program& program, StepList& list) : program_(program), list_(list) {}

  void run() {
    for (size_t i = 0; i < list_.size(); ++i) {
      if (!list_.alive(i)) continue;
      if (auto read = result_read(program_, list_, i)) absorb(*read);
    }
  }

 private:
  void absorb(const ResultRead& read) {
    const Anchor anchor = *anchor_of(list_[read.anchor]);
    const loop::Epilogue& old = *anchor.epilogue;
    const loop::Stage& stage = *list_.stage(read.reader);
    loops_ = loops_of(stage);
    find_users(stage);
    dtype_ = program_.buffers[anchor.out->buffer].dtype;

    loop::Epilogue epilogue = old;  // what is added to it comes behind what it has
    ExprId now = read.load;
    if (auto other = added_to(now); other && !old.has_bias && !old.has_residual && !old.relu)
      if (auto bias = bias_of(*other, read, *anchor.out)) {
        epilogue.has_bias = true;
        epilogue.bias = *bias;
        now = *only_user(now);
      }
    if (auto other = added_to(now); other && !old.has_residual && !old.relu)
      if (auto residual = residual_of(*other, read, *anchor.out)) {
        epilogue.has_residual = true;
        epilogue.residual = *residual;
        now = *only_user(now);
      }
    if (auto user = only_user(now); user && is_relu(*user, now)) {
      epilogue.relu = true;
      now = *user;
    }
    const bool nothing_added = now == read.load;

    loop::Step step = list_[read.anchor];
    auto set = [&](const loop::Operand* out) {
      if (auto* g = std::get_if<loop::Gemm>(&step)) {
        g->epilogue = epilogue;
        if (out) g->out = *out;
      } else {
        auto& c = std::get<loop::Convolution>(step);
        c.epilogue = epilogue;
        if (out) c.y = *out;
      }
    };
    auto out = whole(stage, now, read, *anchor.out);
    if (nothing_added && (!out || !copies_rows(list_[read.anchor], *out))) return;
    if (out && !list_.updates(read.reader) && !list_.overwritten(read.anchor, read.anchor, read.reader)) {
      set(&*out);
      list_.node(read.reader) = list_.node(read.anchor);
      list_.remove(read.anchor);
      list_.replace(read.reader, std::move(step));
      return;
    }
    if (nothing_added) return;
    // The stage stays behind the anchor: what the epilogue reads must be there before it.
    for (const loop::Operand* o : {&epilogue.bias, &epilogue.residual}) {
      if (o->sizes.empty()) continue;
      const std::set<size_t>& writers = list_.writers(root_of(program_, o->buffer));
      if (auto next = writers.upper_bound(read.anchor); next != writers.end() && *next < read.reader) return;
    }
    set(nullptr);
    const ExprNode through = program_.arena[now];
    loop::Stage reader = stage;
    Rewrite(program_.arena, [&](const ExprNode& n) -> std::optional<ExprId> {
      if (n == through) return read.load;
      return std::nullopt;
    })(reader);
    list_.replace(read.anchor, std::move(step));
    list_.replace(read.reader, std::move(reader));
  }

  void find_users(const loop::Stage& stage) {
    users_.clear();
    std::vector<ExprId> exprs = expressions_of(stage);
    for (ExprId id : exprs) users_[id].push_back(~0u);
    for_each_node(program_.arena, exprs, [&](ExprId id) {
      const ExprNode& n = program_.arena[id];
      for (ExprId arg : n.args) users_[arg].push_back(id);
      for (ExprId arg : {n.guard, n.otherwise})
        if (arg != ~0u) users_[arg].push_back(id);
    });
  }
  std::optional<ExprId> only_user(ExprId id) const {
    const std::vector<ExprId>& users = users_.at(id);
    if (users.size() != 1 || users[0] == ~0u) return std::nullopt;
    return users[0];
  }
  /// The other operand of the one addition that uses a node.
  std::optional<ExprId> added_to(ExprId id) const {
    auto user = only_user(id);
    if (!user || program_.arena[*user].fn != Fn::add) return std::nullopt;
    const ExprNode& n = program_.arena[*user];
    return n.args[0] == id ? n.args[1] : n.args[0];
  }
  bool is_relu(ExprId id, ExprId of) const {
    const ExprNode& n = program_.arena[id];
    if (n.fn != Fn::max) return false;
    const ExprNode& other = program_.arena[n.args[0] == of ? n.args[1] : n.args[0]];
    return other.fn == Fn::constant && other.real == 0 && !std::signbit(other.real);
  }

  const ExprNode* plain_load(ExprId id) const {
    const ExprNode& n = program_.arena[id];
    return n.fn == Fn::load && n.guard == ~0u && program_.buffers[n.buffer].dtype == dtype_ ? &n : nullptr;
  }

  std::optional<loop::Operand> bias_of(ExprId id, const ResultRead& read, const loop::Operand& result) const {
    const ExprNode* n = plain_load(id);
    if (!n) return std::nullopt;
    auto out = over_loops(n->buffer, n->args, read, result);
    if (!out) return std::nullopt;
    for (size_t j = 0; j < out->sizes.size(); ++j)
      if (j != read.channels && !read.loops[j].empty() && !(out->strides[j] == SymInt(0))) return std::nullopt;
    if (out->strides[read.channels] == SymInt(0)) return std::nullopt;
    return loop::Operand{out->buffer, {out->sizes[read.channels]}, {out->strides[read.channels]}, out->offset};
  }

  /// An operand with a dimension for each of the result's, by the loops that the stage has over them.
  std::optional<loop::Operand> over_loops(BufferId buffer, std::span<const ExprId> at, const ResultRead& read,
                                          const loop::Operand& result) const {
    auto f = strided(program_, buffer, at, loops_.size());
    if (!f) return std::nullopt;
    loop::Operand out{buffer, result.sizes, Sizes(result.sizes.size(), 0), f->base};
    for (size_t j = 0; j < result.sizes.size(); ++j) {
      const std::vector<size_t>& walked = read.loops[j];
      if (walked.empty()) continue;
      out.strides[j] = f->by_loop[walked.back()];
      for (size_t i = 0; i + 1 < walked.size(); ++i)
        if (!(f->by_loop[walked[i]] == f->by_loop[walked[i + 1]] * loops_[walked[i + 1]])) return std::nullopt;
    }
    for (size_t k = 0; k < loops_.size(); ++k)
      if (!(f->by_loop[k] == SymInt(0)) && !(loops_[k] == SymInt(1)) && !walks(read, k)) return std::nullopt;
    return out;
  }
  static bool walks(const ResultRead& read, size_t loop) {
    return std::any_of(read.loops.begin(), read.loops.end(), [&](const std::vector<size_t>& walked) {
      return std::find(walked.begin(), walked.end(), loop) != walked.end();
    });
  }
  /// A stride for every dimension that has one.
  static bool is_whole(const loop::Operand& o, const ResultRead& read) {
    for (size_t j = 0; j < o.sizes.size(); ++j)
      if (!read.loops[j].empty() && o.strides[j] == SymInt(0)) return false;
    return true;
  }

  std::optional<loop::Operand> residual_of(ExprId id, const ResultRead& read, const loop::Operand& result) const {
    const ExprNode* n = plain_load(id);
    if (!n) return std::nullopt;
    auto out = over_loops(n->buffer, n->args, read, result);
    if (out && !is_whole(*out, read)) return std::nullopt;
    return out;
  }

  /// A stage that only copies is spared where a product stores what it has in registers. A convolution's result lies as
  /// its channels do, and may be turned on the way.
  static bool copies_rows(const loop::Step& anchor, const loop::Operand& out) {
    return std::holds_alternative<loop::Gemm>(anchor) && out.strides.back() == SymInt(1);
  }

  /// Where the anchor may write instead of the stage, if the epilogue is all that the stage does.
  std::optional<loop::Operand> whole(const loop::Stage& stage, ExprId value, const ResultRead& read,
                                     const loop::Operand& result) const {
    if (!stage.accumulators.empty() || stage.stores.size() != 1) return std::nullopt;
    const loop::Store& store = stage.stores[0];
    if (store.value != value || store.mode != loop::Mode::set || store.where != ~0u ||
        program_.buffers[store.to].dtype != dtype_)
      return std::nullopt;
    for (size_t k = 0; k < stage.domain.size(); ++k)
      if (!(stage.domain[k] == SymInt(1)) && !walks(read, k)) return std::nullopt;
    BufferId to = root_of(program_, store.to);
    const std::vector<BufferId>& reads = list_.reads(read.reader);
    if (std::binary_search(reads.begin(), reads.end(), to)) return std::nullopt;
    const std::vector<BufferId>& inputs = list_.reads(read.anchor);
    if (std::binary_search(inputs.begin(), inputs.end(), to)) return std::nullopt;
    auto out = over_loops(store.to, store.at, read, result);
    if (out && !is_whole(*out, read)) return std::nullopt;
    return out;
  }

  loop::Program& program_;
  StepList& list_;
  DType dtype_ = DType::f32;
  Sizes loops_;  // of the reader
  std::unordered_map<ExprId, std::vector<ExprId>> users_;
};

}  // namespace

loop::Program add_epilogues(loop::Program program) {
  for_each_list(program, [&](StepList& list) { Epilogues(program, list).run(); });
  return compact(std::move(program));
}

}  // namespace tenon::optimize

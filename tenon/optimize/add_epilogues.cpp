#include "tenon/optimize/add_epilogues.h"

#include <algorithm>
#include <cmath>

#include "tenon/optimize/anchors.h"
#include "tenon/optimize/compact.h"
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
    if (old.has_bias || old.has_residual || old.relu) return;
    const loop::Stage& stage = *list_.stage(read.reader);
    find_users(stage);
    dtype_ = program_.buffers[anchor.out->buffer].dtype;

    loop::Epilogue epilogue;
    ExprId now = read.load;
    if (auto other = added_to(now))
      if (auto bias = bias_of(*other, read)) {
        epilogue.has_bias = true;
        epilogue.bias = *bias;
        now = *only_user(now);
      }
    if (auto other = added_to(now))
      if (auto residual = residual_of(*other, read, *anchor.out)) {
        epilogue.has_residual = true;
        epilogue.residual = *residual;
        now = *only_user(now);
      }
    if (auto user = only_user(now); user && is_relu(*user, now)) {
      epilogue.relu = true;
      now = *user;
    }
    if (now == read.load) return;

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
    if (auto out = whole(stage, now, read, *anchor.out);
        out && !list_.updates(read.reader) && !list_.overwritten(read.anchor, read.anchor, read.reader)) {
      set(&*out);
      list_.node(read.reader) = list_.node(read.anchor);
      list_.remove(read.anchor);
      list_.replace(read.reader, std::move(step));
      return;
    }
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

  std::optional<loop::Operand> bias_of(ExprId id, const ResultRead& read) const {
    const ExprNode* n = plain_load(id);
    if (!n) return std::nullopt;
    const loop::Buffer& b = program_.buffers[n->buffer];
    std::optional<loop::Operand> out;
    for (size_t d = 0; d < n->args.size(); ++d) {
      if (b.sizes[d] == SymInt(1)) continue;
      if (out || as_loop(program_.arena, n->args[d]) != read.channel) return std::nullopt;
      out = loop::Operand{n->buffer, {b.sizes[d]}, {b.strides[d]}, 0};
    }
    return out;
  }

  /// An operand with a dimension for each of the result's, by the loops that the stage has over them.
  std::optional<loop::Operand> over_loops(BufferId buffer, std::span<const ExprId> at, const ResultRead& read,
                                          const loop::Operand& result) const {
    const loop::Buffer& b = program_.buffers[buffer];
    loop::Operand out{buffer, result.sizes, Sizes(result.sizes.size(), 0), 0};
    size_t found = 0, wanted = 0;
    for (size_t j = 0; j < result.sizes.size(); ++j) {
      if (!read.loops[j]) continue;
      ++wanted;
      for (size_t d = 0; d < at.size(); ++d) {
        auto [loop, from] = shifted_loop(at[d]);
        if (loop != read.loops[j]) continue;
        out.strides[j] = b.strides[d];
        out.offset = out.offset + b.strides[d] * from;
        ++found;
      }
    }
    size_t others = 0;  // dimensions that no loop of the result runs over must have one element
    for (size_t d = 0; d < at.size(); ++d) {
      auto [loop, from] = shifted_loop(at[d]);
      bool counted = loop && std::find(read.loops.begin(), read.loops.end(), loop) != read.loops.end();
      if (!counted && !(b.sizes[d] == SymInt(1))) ++others;
    }
    if (found != wanted || others > 0) return std::nullopt;
    return out;
  }
  /// "i1" or "(i1 + 3)".
  std::pair<std::optional<size_t>, int64_t> shifted_loop(ExprId id) const {
    if (auto k = as_loop(program_.arena, id)) return {k, 0};
    const ExprNode& n = program_.arena[id];
    if (n.fn != Fn::add) return {std::nullopt, 0};
    for (size_t i : {size_t{0}, size_t{1}}) {
      const ExprNode& other = program_.arena[n.args[1 - i]];
      if (auto k = as_loop(program_.arena, n.args[i]); k && other.fn == Fn::constant) return {k, other.integer};
    }
    return {std::nullopt, 0};
  }

  std::optional<loop::Operand> residual_of(ExprId id, const ResultRead& read, const loop::Operand& result) const {
    const ExprNode* n = plain_load(id);
    if (!n) return std::nullopt;
    return over_loops(n->buffer, n->args, read, result);
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
      if (!(stage.domain[k] == SymInt(1)) &&
          std::find(read.loops.begin(), read.loops.end(), std::optional(k)) == read.loops.end())
        return std::nullopt;
    BufferId to = root_of(program_, store.to);
    const std::vector<BufferId>& reads = list_.reads(read.reader);
    if (std::binary_search(reads.begin(), reads.end(), to)) return std::nullopt;
    const std::vector<BufferId>& inputs = list_.reads(read.anchor);
    if (std::binary_search(inputs.begin(), inputs.end(), to)) return std::nullopt;
    return over_loops(store.to, store.at, read, result);
  }

  loop::Program& program_;
  StepList& list_;
  DType dtype_ = DType::f32;
  std::unordered_map<ExprId, std::vector<ExprId>> users_;
};

}  // namespace

loop::Program add_epilogues(loop::Program program) {
  for_each_list(program, [&](StepList& list) { Epilogues(program, list).run(); });
  return compact(std::move(program));
}

}  // namespace tenon::optimize

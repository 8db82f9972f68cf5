#include "tenon/optimize/assign_layouts.h"

#include <algorithm>
#include <map>
#include <set>

#include "tenon/base/error.h"
#include "tenon/optimize/compact.h"
#include "tenon/optimize/index.h"
#include "tenon/optimize/rewrite.h"

namespace tenon::optimize {
namespace {

using loop::BufferId;
using loop::ExprId;
using loop::ExprNode;
using loop::Fn;
using loop::Operand;
using loop::Stage;

bool is_one(SymInt e) { return e == SymInt(1); }

/// Dense strides with dimension `inner` last, the others in order.
Sizes strides_with(const Sizes& sizes, size_t inner) {
  Sizes order;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (d != inner) order.push_back(sizes[d]);
  order.push_back(sizes[inner]);
  const Sizes dense = contiguous_strides(order);
  Sizes out(sizes.size(), 0);
  size_t next = 0;
  for (size_t d = 0; d < sizes.size(); ++d) out[d] = d == inner ? dense[dense.size() - 1] : dense[next++];
  return out;
}

/// Where an operand lies in the buffer behind it, dimension by dimension.
struct OperandPlace {
  std::vector<std::optional<size_t>> dims;  // the buffer's, for each of the operand's; none for those of size 1
  Sizes first;                              // the buffer's index of the operand's first element
};

class Layouts {
 public:
  explicit Layouts(loop::Program& program)
      : program_(program), fixed_(program.buffers.size()), inner_(program.buffers.size()) {}

  void run() {
    for (BufferId b = 0; b < program_.buffers.size(); ++b) {
      const loop::Buffer& buffer = program_.buffers[b];
      if (buffer.role != loop::Role::arena || buffer.strides != contiguous_strides(buffer.sizes)) fix(b);
    }
    for (const loop::Step& step : program_.on_state) fix_all(step);
    for_each_step(program_.steps, [&](loop::Step& step) { study(step); });
    for (const auto& [b, dim] : wanted_) assign(b, dim);
    while (!changed_.empty()) {
      BufferId b = changed_.back();
      changed_.pop_back();
      for (Stage* stage : stages_of_[b]) spread(*stage);
      for (loop::Convolution* c : convolutions_of_[b]) spread(*c);
    }
    apply();
  }

 private:
  template <class Visit>
  void for_each_step(std::vector<loop::Step>& steps, const Visit& visit) {
    for (loop::Step& step : steps) {
      if (auto* control = std::get_if<loop::Control>(&step))
        for (loop::Body& body : control->bodies) for_each_step(body.steps, visit);
      else visit(step);
    }
  }

  void fix(BufferId b) { fixed_[root_of(program_, b)] = true; }
  void fix_all(const loop::Step& step) {
    loop::for_each_read(program_, step, [&](BufferId b) { fix(b); });
    loop::for_each_write(program_, step, [&](BufferId b) { fix(b); });
  }

  static std::vector<Operand*> images(loop::Convolution& c) {
    std::vector<Operand*> out{&c.x, &c.y};
    if (c.epilogue.has_residual) out.push_back(&c.epilogue.residual);
    return out;
  }

  void study(loop::Step& step) {
    if (auto* stage = std::get_if<Stage>(&step)) {
      study(*stage);
    } else if (auto* c = std::get_if<loop::Convolution>(&step)) {
      fix(c->w.buffer);
      if (c->epilogue.has_bias) fix(c->epilogue.bias.buffer);
      for (Operand* o : images(*c)) {
        const BufferId root = root_of(program_, o->buffer);
        auto at = place_of(*o);
        if (!at || !at->dims[1]) {
          fix(root);
          continue;
        }
        convolutions_of_[root].push_back(c);
        wanted_.emplace_back(root, *at->dims[1]);
      }
    } else fix_all(step);
  }

  void study(Stage& stage) {
    for_each_access(stage, [&](BufferId b, std::span<const ExprId>) {
      const BufferId root = root_of(program_, b);
      std::vector<Stage*>& known = stages_of_[root];
      if (known.empty() || known.back() != &stage) known.push_back(&stage);
      if (b != root) views_.insert(b);
    });
  }

  template <class Visit>
  void for_each_access(const Stage& stage, const Visit& visit) {
    for_each_node(program_.arena, expressions_of(stage), [&](ExprId id) {
      const ExprNode& n = program_.arena[id];
      if (n.fn == Fn::load) visit(n.buffer, std::span<const ExprId>(n.args.begin(), n.args.size()));
    });
    for (const loop::Store& s : stage.stores) visit(s.to, std::span<const ExprId>(s.at.begin(), s.at.size()));
  }

  /// Found by strides: the buffer is dense, in row-major order.
  std::optional<OperandPlace> place_of(const Operand& o) const {
    const loop::Buffer& own = program_.buffers[o.buffer];
    const loop::Buffer& b = program_.buffers[root_of(program_, o.buffer)];
    if (own.dtype != b.dtype) return std::nullopt;
    OperandPlace out;
    out.dims.resize(o.sizes.size());
    std::vector<bool> taken(b.sizes.size(), false);
    for (size_t j = 0; j < o.sizes.size(); ++j) {
      if (is_one(o.sizes[j])) continue;
      for (size_t d = 0; d < b.sizes.size() && !out.dims[j]; ++d)
        if (!taken[d] && !is_one(b.sizes[d]) && b.strides[d] == o.strides[j]) out.dims[j] = d;
      if (!out.dims[j]) return std::nullopt;
      taken[*out.dims[j]] = true;
    }
    out.first = Sizes(b.sizes.size(), 0);
    SymInt rest = own.offset + o.offset;
    for (size_t d = 0; d < b.sizes.size() && !(rest == SymInt(0)); ++d) {
      if (is_one(b.sizes[d])) continue;
      if (!rest.is_int() || !b.strides[d].is_int() || b.strides[d].as_int() == 0) return std::nullopt;
      out.first[d] = rest.as_int() / b.strides[d].as_int();
      rest = rest.as_int() % b.strides[d].as_int();
    }
    if (!(rest == SymInt(0))) return std::nullopt;
    for (size_t j = 0; j < o.sizes.size(); ++j)
      if (out.dims[j] && !within(out.first[*out.dims[j]], o.sizes[j], b.sizes[*out.dims[j]])) return std::nullopt;
    return out;
  }
  /// Strides alone do not tell: one dimension of the operand may walk through two of the buffer.
  static bool within(SymInt first, SymInt count, SymInt size) {
    if (first.is_int() && count.is_int() && size.is_int()) return first.as_int() + count.as_int() <= size.as_int();
    return first == SymInt(0) && count == size;
  }

  /// One place and one channel are the same in every layout.
  static bool matters(const Sizes& sizes, size_t inner) {
    if (is_one(sizes[inner])) return false;
    for (size_t d = inner + 1; d < sizes.size(); ++d)
      if (!is_one(sizes[d])) return true;
    return false;
  }

  void assign(BufferId b, size_t dim) {
    if (fixed_[b] || inner_[b] || !matters(program_.buffers[b].sizes, dim)) return;
    for (BufferId v : views_)
      if (program_.buffers[v].view_of == b && !viewed_with(v, dim)) {
        fixed_[b] = true;
        return;
      }
    for (Stage* stage : stages_of_[b])
      if (sums_across(*stage, b, dim)) {
        fixed_[b] = true;
        return;
      }
    inner_[b] = dim;
    changed_.push_back(b);
  }

  /// The view's meta where its base has this dimension innermost.
  std::optional<TensorMeta> viewed_with(BufferId v, size_t dim) const {
    const loop::Buffer& view = program_.buffers[v];
    const loop::Buffer& base = program_.buffers[view.view_of];
    TensorMeta meta = make_meta(base.dtype, base.sizes);
    meta.strides = strides_with(base.sizes, dim);
    for (const remap::Part& part : view.map.parts) {
      if (std::holds_alternative<remap::Strided>(part) || std::holds_alternative<remap::Reinterpret>(part) ||
          !is_view(part, meta))
        return std::nullopt;
      meta = tenon::viewed(part, meta);
    }
    if (meta.sizes != view.sizes) return std::nullopt;
    return meta;
  }

  /// Strides of a buffer or view as they stand now.
  Sizes strides_of(BufferId b) const {
    const BufferId root = root_of(program_, b);
    if (!inner_[root]) return program_.buffers[b].strides;
    return b == root ? strides_with(program_.buffers[b].sizes, *inner_[root]) : viewed_with(b, *inner_[root])->strides;
  }

  /// A reduction that takes in channels and places: it wants them as they are.
  bool sums_across(const Stage& stage, BufferId b, size_t dim) {
    if (stage.reduce.empty()) return false;
    const size_t first = stage.domain.size();
    size_t walked = 0;
    bool channels = false;
    for_each_access(stage, [&](BufferId id, std::span<const ExprId> at) {
      if (root_of(program_, id) != b) return;
      const Sizes strides = id == b ? strides_with(program_.buffers[b].sizes, dim) : viewed_with(id, dim)->strides;
      for (size_t d = 0; d < at.size(); ++d) {
        if (!is_one(strides[d]) || is_one(program_.buffers[id].sizes[d])) continue;
        for_each_node(program_.arena, at.subspan(d, 1), [&](ExprId part) {
          if (auto k = as_loop(program_.arena, part)) channels = channels || *k >= first;
        });
      }
    });
    for (SymInt e : stage.reduce) walked += !is_one(e);
    return channels && walked > 1;
  }

  /// The loop that walks over what lies innermost in some buffer.
  std::optional<size_t> inner_loop(BufferId b, std::span<const ExprId> at) const {
    if (!inner_[root_of(program_, b)]) return std::nullopt;
    const Sizes strides = strides_of(b);
    for (size_t d = 0; d < at.size(); ++d)
      if (is_one(strides[d]) && !is_one(program_.buffers[b].sizes[d])) return as_loop(program_.arena, at[d]);
    return std::nullopt;
  }
  std::optional<size_t> inner_loop(const Stage& stage) {
    std::optional<size_t> found;
    for_each_access(stage, [&](BufferId b, std::span<const ExprId> at) {
      if (!found) found = inner_loop(b, at);
    });
    return found;
  }

  void spread(const Stage& stage) {
    auto k = inner_loop(stage);
    if (!k) return;
    for_each_access(stage, [&](BufferId b, std::span<const ExprId> at) {
      if (program_.buffers[b].view_of != loop::no_buffer || at.size() < 3) return;
      for (size_t d = 0; d < at.size(); ++d)
        if (as_loop(program_.arena, at[d]) == k) return assign(b, d);
    });
  }
  void spread(loop::Convolution& c) {
    for (Operand* o : images(c))
      if (auto at = place_of(*o); at && at->dims[1]) assign(root_of(program_, o->buffer), *at->dims[1]);
  }

  void apply() {
    std::vector<BufferId> views(views_.begin(), views_.end());
    std::vector<std::pair<Operand*, Operand>> operands;
    std::vector<std::pair<Stage*, size_t>> walks;
    for_each_step(program_.steps, [&](loop::Step& step) {
      if (auto* stage = std::get_if<Stage>(&step)) {
        if (auto k = inner_loop(*stage)) walks.emplace_back(stage, *k);
      } else if (auto* c = std::get_if<loop::Convolution>(&step)) {
        for (Operand* o : images(*c))
          if (inner_[root_of(program_, o->buffer)]) operands.emplace_back(o, moved(*o));
      }
    });
    for (auto& [stage, k] : walks) walk_innermost(*stage, k);
    for (auto& [o, now] : operands) *o = now;
    for (BufferId v : views) {
      loop::Buffer& view = program_.buffers[v];
      if (!inner_[view.view_of]) continue;
      const TensorMeta meta = *viewed_with(v, *inner_[view.view_of]);
      view.strides = meta.strides;
      view.offset = meta.offset;
    }
    for (BufferId b = 0; b < program_.buffers.size(); ++b)
      if (inner_[b]) program_.buffers[b].strides = strides_with(program_.buffers[b].sizes, *inner_[b]);
  }

  Operand moved(const Operand& o) const {
    const BufferId root = root_of(program_, o.buffer);
    const Sizes strides = strides_with(program_.buffers[root].sizes, *inner_[root]);
    const OperandPlace at = *place_of(o);
    Operand out = o;
    out.buffer = root;
    out.offset = 0;
    for (size_t d = 0; d < at.first.size(); ++d) out.offset += at.first[d] * strides[d];
    for (size_t j = 0; j < o.sizes.size(); ++j) out.strides[j] = at.dims[j] ? strides[*at.dims[j]] : SymInt(0);
    if (!at.dims[1]) out.strides[1] = 1;
    return out;
  }

  /// Loop k of the domain becomes its last, where no order of points is asked for.
  void walk_innermost(Stage& stage, size_t k) {
    const size_t rank = stage.domain.size();
    if (k + 1 >= rank) return;
    for (const loop::Store& s : stage.stores) {
      if (s.where != ~0u) return;
      // Where the loop is an index of what is stored, its iterations never meet: the order of the others stays.
      if (std::any_of(s.at.begin(), s.at.end(), [&](ExprId at) { return as_loop(program_.arena, at) == k; })) continue;
      if (s.mode != loop::Mode::set) return;
      std::vector<bool> walked(rank, false);
      for (ExprId at : s.at) {
        if (!is_strided(program_.arena, at)) return;
        for_each_node(program_.arena, std::span(&at, 1), [&](ExprId id) {
          if (auto loop = as_loop(program_.arena, id); loop && *loop < rank) walked[*loop] = true;
        });
      }
      for (size_t d = 0; d < rank; ++d)
        if (!walked[d] && !is_one(stage.domain[d])) return;
    }
    std::vector<ExprId> now;
    for (size_t d = 0; d < rank + stage.reduce.size(); ++d) {
      const size_t to = d == k ? rank - 1 : d > k && d < rank ? d - 1 : d;
      now.push_back(
          program_.arena.add({.fn = Fn::index, .type = loop::Compute::i64, .integer = static_cast<int64_t>(to)}));
    }
    auto turn = [&](ExprId& e) {
      if (e != ~0u) e = with_loops(program_.arena, e, now);
    };
    for (loop::Accumulator& a : stage.accumulators) turn(a.value);
    for (loop::Store& s : stage.stores) {
      for (ExprId& at : s.at) turn(at);
      turn(s.value);
    }
    const SymInt extent = stage.domain[k];
    stage.domain.erase(k);
    stage.domain.push_back(extent);
  }

  loop::Program& program_;
  std::vector<bool> fixed_;                   // by root
  std::vector<std::optional<size_t>> inner_;  // by root: the dimension chosen
  std::set<BufferId> views_;                  // that stages use
  std::map<BufferId, std::vector<Stage*>> stages_of_;
  std::map<BufferId, std::vector<loop::Convolution*>> convolutions_of_;
  std::vector<std::pair<BufferId, size_t>> wanted_;
  std::vector<BufferId> changed_;
};

}  // namespace

loop::Program assign_layouts(loop::Program program) {
  Layouts(program).run();
  return compact(std::move(program));
}

}  // namespace tenon::optimize

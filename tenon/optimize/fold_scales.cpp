#include "tenon/optimize/fold_scales.h"

#include <algorithm>

#include "tenon/optimize/anchors.h"
#include "tenon/optimize/compact.h"
#include "tenon/optimize/rewrite.h"

namespace tenon::optimize {
namespace {

using loop::BufferId;
using loop::Compute;
using loop::Expr;
using loop::ExprId;
using loop::ExprNode;
using loop::Fn;

/// What is known of a node of the reader: of the channel alone, or result * scale + shift.
struct Part {
  bool of_channel = false, scaled = false;
  Expr scale, shift;  // in f64; no arena: 1 and 0
};

class Scales {
 public:
  Scales(loop::Program& program, StepList& list) : program_(program), list_(list) {}

  void run() {
    for (size_t i = 0; i < list_.size(); ++i)
      if (auto read = result_read(program_, list_, i)) fold(*read);
  }

 private:
  Expr as_f64(ExprId id) { return loop::cast({&program_.arena, id}, Compute::f64); }
  static Expr product(Expr a, Expr b) { return !a.arena ? b : !b.arena ? a : a * b; }
  static Expr sum(Expr a, Expr b) { return !a.arena ? b : !b.arena ? a : a + b; }

  // Each node of the stage once, operands first.
  void study(const loop::Stage& stage, const ResultRead& read) {
    parts_.clear();
    for_each_node(program_.arena, expressions_of(stage), [&](ExprId id) {
      const ExprNode n = program_.arena[id];
      parts_[id] = id == read.load ? Part{.scaled = true} : part_of(n, id, *read.channel());
    });
  }

  Part part_of(const ExprNode& n, ExprId id, size_t channel) {
    Part out;
    switch (n.fn) {
      case Fn::constant: out.of_channel = true; return out;
      case Fn::index: out.of_channel = static_cast<size_t>(n.integer) == channel; return out;
      case Fn::size:
      case Fn::accumulated:
      case Fn::random_bits: return out;
      case Fn::load:
        if (!is_fixed(program_, n.buffer) || n.guard != ~0u) return out;
        out.of_channel = std::all_of(n.args.begin(), n.args.end(), [&](ExprId at) {
          return is_zero(program_.arena, at) || as_loop(program_.arena, at) == channel;
        });
        return out;
      default: break;
    }
    if (n.args.empty()) return out;
    auto part = [&](size_t i) -> const Part& { return parts_.at(n.args[i]); };
    bool all = true;
    for (size_t i = 0; i < n.args.size(); ++i) all = all && part(i).of_channel;
    if (all && n.type != Compute::i64) {
      out.of_channel = true;
      return out;
    }
    if (n.type != Compute::f32 && n.type != Compute::f64) return out;
    auto scaled_by = [&](size_t i, size_t j) { return part(i).scaled && part(j).of_channel; };
    switch (n.fn) {
      case Fn::cast:
        if (!part(0).scaled) return out;
        return part(0);
      case Fn::neg:
        if (!part(0).scaled) return out;
        out = part(0);
        out.scale = product(out.scale, loop::constant(program_.arena, -1.0, Compute::f64));
        if (out.shift.arena) out.shift = -out.shift;
        return out;
      case Fn::add:
      case Fn::mul: {
        size_t i = scaled_by(0, 1) ? 0 : scaled_by(1, 0) ? 1 : 2;
        if (i == 2) return out;
        out = part(i);
        Expr other = as_f64(n.args[1 - i]);
        if (n.fn == Fn::add) out.shift = sum(out.shift, other);
        else {
          out.scale = product(out.scale, other);
          if (out.shift.arena) out.shift = out.shift * other;
        }
        return out;
      }
      case Fn::sub:
      case Fn::div: {
        if (!scaled_by(0, 1)) return out;
        out = part(0);
        Expr other = as_f64(n.args[1]);
        if (n.fn == Fn::sub) out.shift = sum(out.shift, -other);
        else {
          Expr inverse = Expr(1.0) / other;
          out.scale = product(out.scale, inverse);
          if (out.shift.arena) out.shift = out.shift * inverse;
        }
        return out;
      }
      default: (void)id; return out;
    }
  }

  /// The one node through which the whole stage sees the result, the furthest that is result * scale + shift.
  std::optional<ExprId> frontier(const loop::Stage& stage, ExprId load) const {
    if (auto last = last_of_all(stage)) return last;
    // Several: x and x + 3 of a hardswish. What stands before the first of them is one.
    std::unordered_map<ExprId, std::vector<ExprId>> users;
    std::vector<ExprId> exprs = expressions_of(stage);
    for (ExprId id : exprs) users[id].push_back(~0u);
    for_each_node(program_.arena, exprs, [&](ExprId id) {
      for (ExprId arg : program_.arena[id].args) users[arg].push_back(id);
    });
    ExprId now = load;
    while (users[now].size() == 1 && users[now][0] != ~0u && parts_.at(users[now][0]).scaled) now = users[now][0];
    return now;
  }
  std::optional<ExprId> last_of_all(const loop::Stage& stage) const {
    std::optional<ExprId> found;
    bool one = true;
    auto used = [&](ExprId id) {
      if (id == ~0u || !parts_.at(id).scaled) return;
      one = one && (!found || *found == id);
      found = id;
    };
    std::vector<ExprId> exprs = expressions_of(stage);
    for (ExprId id : exprs) used(id);
    for_each_node(program_.arena, exprs, [&](ExprId id) {
      const ExprNode& n = program_.arena[id];
      if (parts_.at(id).scaled) return;
      for (ExprId arg : n.args) used(arg);
      used(n.guard);
      used(n.otherwise);
    });
    return one ? found : std::nullopt;
  }

  void fold(const ResultRead& read) {
    Anchor anchor = *anchor_of(list_[read.anchor]);
    auto* conv = std::get_if<loop::Convolution>(&list_[read.anchor]);
    const loop::Operand from = *anchor.weights;
    if (!read.channel() || anchor.packed || !is_fixed(program_, from.buffer) || (conv && conv->transposed)) return;
    auto dims = dimensions_of(program_, from);
    size_t channel = conv ? 0 : 2;
    if (!dims || !(*dims)[channel]) return;

    const loop::Stage& stage = *list_.stage(read.reader);
    study(stage, read);
    auto through = frontier(stage, read.load);
    if (!through || !parts_.at(*through).scale.arena) return;
    const Part part = parts_.at(*through);

    // The weights, scaled, in a buffer of their operand's sizes.
    const std::string name = program_.buffers[from.buffer].name;
    DType dtype = program_.buffers[anchor.out->buffer].dtype;
    Compute compute = loop::compute_of(dtype);
    BufferId scaled = add_derived(program_, name + "_scaled", dtype, from.sizes);
    loop::Stage weights;
    weights.domain = from.sizes;
    ExprNode load{.fn = Fn::load, .type = loop::compute_of(program_.buffers[from.buffer].dtype), .buffer = from.buffer};
    load.args.resize(program_.buffers[from.buffer].sizes.size(), number(0));
    loop::Store store{.to = scaled};
    for (size_t j = 0; j < from.sizes.size(); ++j) {
      store.at.push_back(loop_index(j));
      if ((*dims)[j]) load.args[*(*dims)[j]] = loop_index(j);
    }
    Expr weight(&program_.arena, program_.arena.add(std::move(load)));
    Expr scale(&program_.arena, at_channel(part.scale.id, *read.channel(), loop_index(channel), stage));
    store.value = loop::cast(loop::cast(weight, Compute::f64) * scale, compute).id;
    weights.stores.push_back(std::move(store));
    program_.on_state.emplace_back(std::move(weights));

    Expr result(&program_.arena, read.load);
    if (part.shift.arena) {
      BufferId shift = add_derived(program_, name + "_shift", dtype, {from.sizes[channel]});
      loop::Stage shifts;
      shifts.domain = {from.sizes[channel]};
      Expr value(&program_.arena, at_channel(part.shift.id, *read.channel(), loop_index(0), stage));
      shifts.stores.push_back({.to = shift, .at = {loop_index(0)}, .value = loop::cast(value, compute).id});
      program_.on_state.emplace_back(std::move(shifts));
      ExprNode shifted{.fn = Fn::load, .type = compute, .buffer = shift};
      shifted.args.push_back(loop_index(*read.channel()));
      result = result + Expr(&program_.arena, program_.arena.add(std::move(shifted)));
    }
    const ExprNode old = program_.arena[*through];
    result = loop::cast(result, old.type);
    loop::Stage reader = stage;
    Rewrite(program_.arena, [&](const ExprNode& n) -> std::optional<ExprId> {
      if (n == old) return result.id;
      return std::nullopt;
    })(reader);

    loop::Operand to{scaled, from.sizes, program_.buffers[scaled].strides, 0};
    loop::Step step = list_[read.anchor];
    if (auto* g = std::get_if<loop::Gemm>(&step)) g->b = to;
    else std::get<loop::Convolution>(step).w = to;
    list_.grow();
    list_.replace(read.anchor, std::move(step));
    list_.replace(read.reader, std::move(reader));
  }

  ExprId number(int64_t value) { return loop::constant(program_.arena, value, Compute::i64).id; }
  ExprId loop_index(size_t k) {
    return program_.arena.add({.fn = Fn::index, .type = Compute::i64, .integer = static_cast<int64_t>(k)});
  }
  /// An expression of the channel alone, with the channel's loop replaced.
  ExprId at_channel(ExprId expr, size_t channel, ExprId by, const loop::Stage& stage) {
    std::vector<ExprId> loops(stage.domain.size() + stage.reduce.size(), number(0));
    loops[channel] = by;
    return with_loops(program_.arena, expr, loops);
  }

  loop::Program& program_;
  StepList& list_;
  std::unordered_map<ExprId, Part> parts_;
};

}  // namespace

loop::Program fold_scales(loop::Program program) {
  for_each_list(program, [&](StepList& list) { Scales(program, list).run(); });
  settle_derived(program);
  return compact(std::move(program));
}

}  // namespace tenon::optimize

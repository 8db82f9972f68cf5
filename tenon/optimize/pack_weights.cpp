#include "tenon/optimize/pack_weights.h"

#include <algorithm>
#include <map>

#include "tenon/loop/pack.h"
#include "tenon/optimize/anchors.h"
#include "tenon/optimize/compact.h"
#include "tenon/optimize/index.h"
#include "tenon/optimize/rewrite.h"

namespace tenon::optimize {
namespace {

using loop::BufferId;
using loop::Expr;
using loop::ExprId;
using loop::ExprNode;
using loop::Fn;

bool fits(const loop::Program& program, const loop::Operand& weights, const loop::Operand& out) {
  DType from = program.buffers[weights.buffer].dtype, to = program.buffers[out.buffer].dtype;
  bool computed = to == DType::f32 || to == DType::f64 || to == DType::i64;
  bool widened = to == DType::f32 && is_half(from);
  for (const Sizes* sizes : {&weights.sizes, &weights.strides})
    for (SymInt e : *sizes)
      if (!e.is_int()) return false;
  return computed && (from == to || widened) && weights.offset.is_int() && is_fixed(program, weights.buffer);
}

/// Buffers made of fixed state by widening it, number by number: what they hold fits into half precision.
class Widened {
 public:
  explicit Widened(const loop::Program& program) : program_(program) {
    std::map<BufferId, size_t> writers;
    for (const loop::Step& step : program.on_state)
      loop::for_each_write(program, step, [&](BufferId b) { ++writers[root_of(program, b)]; });
    for (const loop::Step& step : program.on_state)
      if (auto* stage = std::get_if<loop::Stage>(&step)) add(*stage);
    std::erase_if(copies_, [&](const auto& entry) { return writers[entry.first] != 1; });
  }
  /// The dtype that its numbers fit into; none: its own.
  std::optional<DType> dtype_of(BufferId buffer) const {
    if (is_half(program_.buffers[buffer].dtype)) return program_.buffers[buffer].dtype;
    auto copy = copies_.find(root_of(program_, buffer));
    if (copy == copies_.end()) return std::nullopt;
    return program_.buffers[copy->second.from].dtype;
  }
  /// The same matrix in the buffer behind it, where that has one stride for each of its dimensions.
  loop::Operand behind(const loop::Operand& weights) const {
    auto copy = copies_.find(weights.buffer);
    if (copy == copies_.end() || !copy->second.in_order || !(weights.offset == SymInt(0))) return weights;
    const loop::Buffer &wide = program_.buffers[weights.buffer], &half = program_.buffers[copy->second.from];
    loop::Operand out = weights;
    out.buffer = copy->second.from;
    for (size_t d = 0; d < weights.sizes.size(); ++d) {
      if (weights.sizes[d] == SymInt(1) || weights.strides[d] == SymInt(0)) {
        out.strides[d] = 0;
        continue;
      }
      std::optional<size_t> same;
      for (size_t e = 0; e < wide.sizes.size(); ++e)
        if (wide.sizes[e] == weights.sizes[d] && wide.strides[e] == weights.strides[d]) same = e;
      if (!same) return weights;
      out.strides[d] = half.strides[*same];
    }
    return out;
  }

 private:
  struct Copy {
    BufferId from = 0;
    bool in_order = false;  // every element from the same place
  };

  void add(const loop::Stage& stage) {
    if (!stage.accumulators.empty() || stage.stores.size() != 1) return;
    const loop::Store& store = stage.stores[0];
    const ExprNode& value = program_.arena[store.value];
    if (store.mode != loop::Mode::set || store.where != ~0u || value.fn != Fn::load ||
        !is_half(program_.buffers[value.buffer].dtype))
      return;
    auto in_order = [&](std::span<const ExprId> at) {
      for (size_t k = 0; k < at.size(); ++k)
        if (as_loop(program_.arena, at[k]) != k) return false;
      return at.size() == stage.domain.size();
    };
    const bool whole = stage.domain == program_.buffers[store.to].sizes;
    copies_[root_of(program_, store.to)] = {value.buffer, whole && in_order({store.at.begin(), store.at.end()}) &&
                                                              in_order({value.args.begin(), value.args.end()})};
  }

  const loop::Program& program_;
  std::map<BufferId, Copy> copies_;
};

class Packing {
 public:
  Packing(loop::Program& program, const PackOptions& options)
      : program_(program), options_(options), widened_(program) {}
  void run(std::vector<loop::Step>& steps) {
    for (loop::Step& step : steps) {
      if (auto* g = std::get_if<loop::Gemm>(&step)) {
        if (!g->packed && fits(program_, g->b, g->out)) {
          loop::Pack pack = loop::pack_of(*g, 0);
          const DType dtype = kept_as(pack.from.buffer, program_.buffers[g->out.buffer].dtype);
          if (is_half(dtype)) pack.from = widened_.behind(pack.from);
          *g = with_packed(*g, packed(std::move(pack), dtype));
        }
      } else if (auto* control = std::get_if<loop::Control>(&step)) {
        for (loop::Body& body : control->bodies) run(body.steps);
      } else if (auto* c = std::get_if<loop::Convolution>(&step)) {
        if (c->packed || c->part == loop::ConvPart::weight_gradient || !c->groups.is_int()) continue;
        const loop::Operand& out = c->part == loop::ConvPart::forward ? c->y : c->x;
        if (fits(program_, c->w, out))
          *c = with_packed(*c, packed(loop::pack_of(*c, 0), program_.buffers[out.buffer].dtype, method_of(*c)));
      }
    }
  }

 private:
  loop::ConvMethod method_of(const loop::Convolution& c) const {
    if (options_.methods && loop::has_methods(program_, c))
      if (std::optional<loop::ConvMethod> chosen = options_.methods(program_, c)) return *chosen;
    return loop::method_of(program_, c, {.weight = 0});
  }

  // Halves stay halves: they are widened where they are multiplied.
  DType kept_as(BufferId weights, DType dtype) const {
    if (dtype != DType::f32) return dtype;
    return widened_.dtype_of(weights).value_or(options_.weights.value_or(dtype));
  }

  /// The buffer that holds these weights packed; equal ones share it.
  BufferId packed(loop::Pack pack, DType dtype, loop::ConvMethod method = loop::ConvMethod::direct) {
    const loop::Buffer& view = program_.buffers[pack.from.buffer];
    std::string key =
        text(root_of(program_, pack.from.buffer), view.dtype, view.offset + pack.from.offset, pack.from.sizes,
             pack.from.strides, pack.of_convolution, static_cast<int>(pack.part), pack.stride, pack.padding,
             pack.dilation, pack.transposed, pack.groups, dtype, static_cast<int>(method));
    auto [known, fresh] = known_.try_emplace(std::move(key), 0);
    if (!fresh) return known->second;
    const std::string name = program_.buffers[pack.from.buffer].name + "_packed";
    const Sizes sizes = method == loop::ConvMethod::winograd ? loop::transformed_sizes(pack) : loop::packed_sizes(pack);
    pack.to = known->second = add_derived(program_, name, dtype, sizes);
    program_.on_state.emplace_back(std::move(pack));
    return known->second;
  }

  loop::Program& program_;
  const PackOptions& options_;
  const Widened widened_;
  std::map<std::string, BufferId> known_;
};

/// A table whose rows are looked up and that is also packed for a product (a vocabulary that is both embedding and
/// head) is looked up in its packed form, so that it is kept once.
class PackedTables {
 public:
  explicit PackedTables(loop::Program& program) : program_(program) {}
  void run() {
    for (const loop::Step& step : program_.on_state)
      if (auto* pack = std::get_if<loop::Pack>(&step)) add(*pack);
    for (const loop::Output& out : program_.outputs)
      if (out.buffer != loop::no_buffer) tables_.erase(root_of(program_, out.buffer));
    keep_those_looked_up(program_.steps);
    if (!tables_.empty()) rewrite(program_.steps);
  }

 private:
  struct Table {
    BufferId packed = 0;
    size_t column = 0;  // the dimension of the table that columns of the right side are
  };

  // A whole matrix, contiguous, packed without another's part.
  void add(const loop::Pack& pack) {
    const BufferId root = root_of(program_, pack.from.buffer);
    const loop::Buffer& table = program_.buffers[root];
    if (pack.of_convolution || table.sizes.size() != 2 || !is_fixed(program_, root) ||
        !(pack.from.sizes[0] == SymInt(1)) ||
        !(program_.buffers[pack.from.buffer].offset + pack.from.offset == SymInt(0)))
      return;
    for (size_t column : {0, 1}) {
      const size_t term = 1 - column;
      auto is_dimension = [&](size_t of_pack, size_t d) {
        return pack.from.sizes[of_pack] == table.sizes[d] && pack.from.strides[of_pack] == table.strides[d];
      };
      if (is_dimension(2, column) && is_dimension(1, term)) {
        tables_.try_emplace(root, Table{pack.to, column});
        return;
      }
    }
  }

  // Whoever else reads a table needs it as it is.
  void keep_those_looked_up(const std::vector<loop::Step>& steps) {
    for (const loop::Step& step : steps) {
      if (auto* control = std::get_if<loop::Control>(&step)) {
        for (const loop::Body& body : control->bodies) keep_those_looked_up(body.steps);
        continue;
      }
      auto* stage = std::get_if<loop::Stage>(&step);
      if (!stage) loop::for_each_read(program_, step, [&](BufferId b) { tables_.erase(root_of(program_, b)); });
      else
        for_each_node(program_.arena, expressions_of(*stage), [&](ExprId id) {
          const ExprNode n = program_.arena[id];
          if (n.fn != Fn::load) return;
          auto table = tables_.find(root_of(program_, n.buffer));
          if (table == tables_.end()) return;
          if (n.buffer != table->first ||
              within(program_.arena, n.args[table->second.column],
                     program_.buffers[n.buffer].sizes[table->second.column], loops_of(*stage)))
            tables_.erase(table);
        });
    }
  }

  void rewrite(std::vector<loop::Step>& steps) {
    Rewrite rewrite_loads(program_.arena, [&](const ExprNode& n) -> std::optional<ExprId> {
      if (n.fn != Fn::load) return std::nullopt;
      auto table = tables_.find(n.buffer);
      if (table == tables_.end()) return std::nullopt;
      return in_panels(n, table->second);
    });
    for (loop::Step& step : steps) {
      if (auto* stage = std::get_if<loop::Stage>(&step)) rewrite_loads(*stage);
      if (auto* control = std::get_if<loop::Control>(&step))
        for (loop::Body& body : control->bodies) rewrite(body.steps);
    }
  }

  // An index that is out of range stays so, and what it is: the last panel may hold more than is left of the table.
  ExprId in_panels(ExprNode load, const Table& table) {
    loop::Arena& arena = program_.arena;
    const Expr column(&arena, load.args[table.column]), term(&arena, load.args[1 - table.column]);
    const Expr size = loop::size_expr(arena, program_.buffers[load.buffer].sizes[table.column]);
    const Expr width = loop::constant(arena, loop::panel_width, loop::Compute::i64);
    const Expr panel = loop::select(column >= 0 && column < size, loop::call(Fn::floor_div, column, width), column);
    const Expr in_panel = loop::call(Fn::remainder, column, width);
    const Expr slot = loop::panel_slot(program_.buffers[table.packed].dtype, in_panel);
    load.args = {loop::constant(arena, int64_t{0}, loop::Compute::i64).id, panel.id, term.id, slot.id};
    load.buffer = table.packed;
    return arena.add(std::move(load));
  }

  loop::Program& program_;
  std::map<BufferId, Table> tables_;  // by the table
};

}  // namespace

loop::Program pack_weights(loop::Program program, const PackOptions& options) {
  Packing(program, options).run(program.steps);
  PackedTables(program).run();
  settle_derived(program);
  return compact(std::move(program));
}

}  // namespace tenon::optimize

// Expressions rebuilt with some of their parts replaced.
#pragma once
#include <functional>
#include <optional>
#include <unordered_map>

#include "tenon/loop/program.h"

namespace tenon::optimize {

/// Rebuilds expressions, each once. `replace` is handed every node with its operands already rebuilt and gives what
/// stands in its place, or none: the node stays.
class Rewrite {
 public:
  using Replace = std::function<std::optional<loop::ExprId>(const loop::ExprNode&)>;
  Rewrite(loop::Arena& arena, Replace replace) : arena_(arena), replace_(std::move(replace)) {}
  loop::ExprId operator()(loop::ExprId id);
  void operator()(loop::Stage& stage);  // all of its expressions

 private:
  loop::Arena& arena_;
  Replace replace_;
  std::unordered_map<loop::ExprId, loop::ExprId> done_;
};

/// The expression with loop k replaced by loops[k]. With a guard, memory is touched only where it holds.
loop::ExprId with_loops(loop::Arena& arena, loop::ExprId expr, std::span<const loop::ExprId> loops,
                        loop::ExprId guard = ~0u);

/// Calls visit(id) for each distinct node below some expressions, operands first.
void for_each_node(const loop::Arena& arena, std::span<const loop::ExprId> exprs,
                   const std::function<void(loop::ExprId)>& visit);
/// Those that a stage is written with: what it accumulates, stores, where and when.
std::vector<loop::ExprId> expressions_of(const loop::Stage& stage);

/// Sums of loops and their products by constants: strides, which cost nothing.
bool is_strided(const loop::Arena& arena, loop::ExprId index);

/// What evaluating some expressions once costs, in units of one addition.
struct Weight {
  double work = 0;
  size_t nodes = 0, loads = 0;
};
Weight weight(const loop::Program& program, std::span<const loop::ExprId> exprs);

/// Running it can be an Error that data decides: an index out of range, an integer divided by zero.
bool may_fail(const loop::Program& program, const loop::Stage& stage);

/// Reductions whose results no store uses.
void drop_unused_accumulators(loop::Arena& arena, loop::Stage& stage);

}  // namespace tenon::optimize

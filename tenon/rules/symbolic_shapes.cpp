#include "tenon/rules/symbolic_shapes.h"

#include "tenon/base/error.h"

namespace tenon {
sym::ShapeEnv* growing_shapes() { return context().growing_shapes; }

std::optional<bool> proven(sym::Expr condition) {
  if (condition.is(sym::Kind::boolean)) return condition.boolean_value();
  const sym::ShapeEnv* shapes = context().shapes;
  return shapes ? shapes->decide(condition) : sym::decide(condition);
}

std::optional<bool> known(sym::Expr condition) {
  auto sure = proven(condition);
  Examples* examples = context().examples;
  return sure || !examples ? sure : examples->decide(condition);
}

SymInt data_dependent_size() {
  sym::ShapeEnv* growing = growing_shapes();
  require(growing != nullptr, "a size that only a run can tell was asked for outside of a program");
  SymInt size = growing->fresh_unbacked();
  growing->constrain(size, {0, sym::Range::infinity});  // files list it
  return size;
}

sym::Expr data_dependent_real() {
  sym::ShapeEnv* growing = growing_shapes();
  require(growing != nullptr, "a number that only a run can tell was asked for outside of a program");
  return sym::Expr::symbol(text("zuf", growing->next_unbacked++), {.integer = false, .real = true});
}

SymInt smaller(SymInt a, SymInt b) {
  if (a.is_int() && b.is_int()) return std::min(a.as_int(), b.as_int());
  if (proven(sym::le(a, b)) == true) return a;
  if (proven(sym::le(b, a)) == true) return b;
  return sym::min(a, b);
}

SymInt larger(SymInt a, SymInt b) {
  if (a.is_int() && b.is_int()) return std::max(a.as_int(), b.as_int());
  if (proven(sym::le(a, b)) == true) return b;
  if (proven(sym::le(b, a)) == true) return a;
  return sym::max(a, b);
}

}  // namespace tenon

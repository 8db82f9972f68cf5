// What a rule relies on without proof: conditions on sizes that only a run can decide.
#pragma once
#include "tenon/rules/call.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {

/// A condition on sizes that the rule of a call relies on. One that cannot be decided here becomes a guard of the
/// program being made, with these words as its reason, and is checked when that program runs.
template <class... Parts>
void relies_on(const ArgsView& call, sym::Expr condition, const Parts&... reason) {
  if (std::optional<bool> holds = known(condition)) call.require(*holds, reason...);
  else if (sym::ShapeEnv* shapes = growing_shapes()) shapes->guards.add({condition, call.op.name(), text(reason...)});
}
template <class... Parts>
void relies_on_equal(const ArgsView& call, SymInt a, SymInt b, const Parts&... reason) {
  if (!(a == b)) relies_on(call, sym::eq(a, b), reason...);
}

}  // namespace tenon

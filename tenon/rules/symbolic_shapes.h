// What a meta rule may know of symbols: the ranges of the program being traced.
#pragma once
#include "tenon/sym/shape_env.h"
#include "tenon/tensor/context.h"

namespace tenon {

/// Makes a program's ranges the ones that rules on this thread decide by.
class ShapesScope : ContextScope<const sym::ShapeEnv*>, ContextScope<sym::ShapeEnv*> {
 public:
  explicit ShapesScope(const sym::ShapeEnv* shapes)
      : ContextScope<const sym::ShapeEnv*>(&Context::shapes, shapes),
        ContextScope<sym::ShapeEnv*>(&Context::growing_shapes, nullptr) {}
  /// Rules may add symbols to these.
  explicit ShapesScope(sym::ShapeEnv* shapes)
      : ContextScope<const sym::ShapeEnv*>(&Context::shapes, shapes),
        ContextScope<sym::ShapeEnv*>(&Context::growing_shapes, shapes) {}
};

/// What rules on this thread may add symbols to; null where there is none.
sym::ShapeEnv* growing_shapes();

/// Whether a condition on sizes certainly holds, or certainly fails.
std::optional<bool> known(sym::Expr condition);
inline bool statically_true(sym::Expr condition) { return known(condition).value_or(false); }
/// The smaller of two sizes, simplified by what is known.
SymInt smaller(SymInt a, SymInt b);
SymInt larger(SymInt a, SymInt b);
/// A size that only a run can tell, as a new symbol of the program being traced.
SymInt data_dependent_size();
/// Likewise a floating point number.
sym::Expr data_dependent_real();

}  // namespace tenon

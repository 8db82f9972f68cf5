// What a meta rule may know of symbols: the ranges of the program being traced.
#pragma once
#include "tenon/sym/shape_env.h"

namespace tenon {

/// Makes a program's ranges the ones that rules on this thread decide by.
class ShapesScope {
 public:
  explicit ShapesScope(const sym::ShapeEnv* shapes);
  explicit ShapesScope(sym::ShapeEnv* shapes);  // rules may add symbols to it
  ~ShapesScope();
  ShapesScope(const ShapesScope&) = delete;

 private:
  const sym::ShapeEnv* previous_;
  sym::ShapeEnv* previous_growing_;
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

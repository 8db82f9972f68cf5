// Counts of elements, compared as the sizes are meant.
#pragma once
#include "tenon/sym/expr.h"

namespace tenon::sym {

/// e where every division leaves no rest and no size is 0: s0//2 is s0/2, Max(1, s0) is s0. What relies on it is a
/// guard.
Expr exact_form(Expr e);
/// Whether two sizes, strides or counts are the same number then.
bool equal_if_exact(Expr a, Expr b);

}  // namespace tenon::sym

// Comparisons of elements: truth values of them, and the larger or smaller of two.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle eq, ne, lt, le, gt, ge, maximum, minimum, fmin, fmax, isclose, isnan, isinf, isfinite;

/// Gradients of the larger (or smaller) of a and b: where they tie, each gets half.
Grads tied_gradients(const Tensor& g, const Tensor& a, const Tensor& b, bool larger);

}  // namespace tenon

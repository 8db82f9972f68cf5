// Mathematical functions of one or several elements beyond plain arithmetic.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle expm1, exp2, log2, log10, log1p, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, erf, erfc,
    erfinv, floor, ceil, trunc, round, lgamma, digamma, isnan, isinf, isfinite, sgn, angle;
extern Handle clamp, clamp_min, clamp_max, addcmul, addcdiv, lerp, fmin, fmax, remainder, fmod, floor_divide, xlogy,
    logaddexp;

/// The gradient where an input is kept, 0 elsewhere.
Tensor kept(const Tensor& grad, const Tensor& where_kept);

}  // namespace tenon

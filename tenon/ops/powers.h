// Powers, roots, exponentials and logarithms.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle pow_scalar, pow_tensor, pow_base, square, sqrt, rsqrt, exp, exp2, expm1, log, log2, log10, log1p, xlogy,
    logaddexp, hypot;

}  // namespace tenon

// Norms of weights.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

/// The slices along `dim` whose p-norm is above `max_norm`, scaled down to it; the others as they are.
Tensor renormalized(const Tensor& x, double p, int64_t dim, const CallArg& max_norm);

}  // namespace tenon

// Tensors from nothing: filled, counted, like another.
#pragma once
#include "tenon/ops/op_def.h"

namespace tenon {

extern Handle full, full_like, zeros_like, ones_like, empty_like, arange, scalar_tensor;

/// Zeros of these sizes with the dtype and device of another tensor.
Tensor zeros(const Sizes& sizes, const Tensor& like);

}  // namespace tenon

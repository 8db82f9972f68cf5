// Tensors of ones, as a cotangent that is not given is.
#pragma once
#include "tenon/tensor/tensor.h"

namespace tenon {

/// Of constant sizes. From `expanded_from` elements on it is one element that is seen everywhere (strides of 0): sizes
/// come from files, and nothing but the program's own work should cost what they say.
Tensor ones_tensor(DType dtype, const Sizes& sizes);
inline constexpr int64_t expanded_from = int64_t{1} << 20;

}  // namespace tenon

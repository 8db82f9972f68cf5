// Tensors from nothing: filled, counted, like another.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle full, full_like, ones, zeros_like, ones_like, empty_like, arange, linspace, scalar_tensor, new_zeros, new_full, eye;

/// Zeros of these sizes with the dtype and device of another tensor.
Tensor zeros(const Sizes& sizes, const Tensor& like);

/// dtype, layout, device and pin_memory follow each other in every factory's schema, from position `at` on.
TensorMeta factory_meta(const ArgsView& m, Sizes sizes, DType otherwise, size_t at);
void lower_filled(Lower& l, double value);
void lower_full(Lower& l, size_t value);   // with a number argument

}  // namespace tenon

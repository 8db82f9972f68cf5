// Tensors from nothing: filled with a value, like another, new ones of another's dtype.
#pragma once
#include "tenon/rules/op_def.h"

/// What every factory takes at the end of its schema.
#define TENON_TENSOR_OPTIONS "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"

namespace tenon {

extern Handle full, ones, full_like, zeros_like, ones_like, empty_like, scalar_tensor, new_zeros, new_full, eye;

/// Zeros of these sizes with the dtype and device of another tensor.
Tensor zeros(const Sizes& sizes, const Tensor& like);

/// Of what its argument changes in steps, or not at all: zeros, where PyTorch gives zeros too.
Grads zero_gradient(Vjp& v);

/// A contiguous tensor by the dtype and device options of a factory.
TensorMeta factory_meta(const ArgsView& m, Sizes sizes, DType otherwise);
/// The dtype of a number as a factory takes it.
DType number_dtype(const CallArg& arg);

}  // namespace tenon

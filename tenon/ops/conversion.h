// Copies and conversions: clone, to, copy, contiguous.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle clone, to_copy, copy, contiguous, overlay;

/// The tensor in another dtype; itself where it has it.
Tensor to(const Tensor& x, DType dtype);

}  // namespace tenon

// Memory formats that results take over from their operands.
#pragma once
#include "tenon/tensor/meta.h"

namespace tenon {

/// channels_last or channels_last_3d where the strides are in that order, else contiguous: what PyTorch suggests for a
/// result of an op on images. A layout that could be either counts as contiguous.
MemoryFormat suggested_format(const TensorMeta& meta);
/// A new tensor of these sizes in the format that `operand` suggests; contiguous where the ranks differ.
TensorMeta formatted_like(const TensorMeta& operand, Sizes sizes, DType dtype);
TensorMeta formatted_like(const TensorMeta& operand, Sizes sizes);

}  // namespace tenon

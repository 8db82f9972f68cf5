// Reductions over dimensions.
#pragma once
#include "tenon/ops/op_def.h"

namespace tenon {

extern Handle sum, mean;

/// Sizes left when dims are reduced: 1 with keepdim, gone without.
Sizes reduced_sizes(const Sizes& sizes, std::span<const size_t> dims, bool keepdim);
/// The index of an operand from the index of a reduced result and the indices of the reduced dims.
Index unreduced(const Index& result, const Index& reduced, std::span<const size_t> dims, size_t rank, bool keepdim);
Sizes extents_of(const Sizes& sizes, std::span<const size_t> dims);
/// Gives a reduced tensor its dims of size 1 back, so that it broadcasts against what was reduced.
Tensor restore_dims(const Tensor& reduced, const Sizes& sizes, std::span<const size_t> dims, bool keepdim);

}  // namespace tenon

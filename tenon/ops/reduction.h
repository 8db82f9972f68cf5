// Reductions over dimensions.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle sum, sum_all, mean, mean_all, amax, amin, any, any_dim, all, all_dim, prod, count_nonzero, argmax;

/// Sizes left when dims are reduced: 1 with keepdim, gone without.
Sizes reduced_sizes(const Sizes& sizes, std::span<const size_t> dims, bool keepdim);
/// The index of an operand from the index of a reduced result and the indices of the reduced dims.
Index unreduced(const Index& result, const Index& reduced, std::span<const size_t> dims, size_t rank, bool keepdim);
Sizes extents_of(const Sizes& sizes, std::span<const size_t> dims);
/// The dims a call reduces: what its arguments dim and keepdim say. A call without dim reduces all of them.
struct Reduced {
  SmallVector<size_t, 6> dims;
  bool keepdim = false;
  size_t rank = 0;
  Reduced(const ArgsView& call, const Sizes& sizes);
  Reduced(SmallVector<size_t, 6> dims, bool keepdim, size_t rank)
      : dims(std::move(dims)), keepdim(keepdim), rank(rank) {}
  Index at(const Index& result, const Index& reduced) const { return unreduced(result, reduced, dims, rank, keepdim); }
  Reduced kept() const { return {dims, true, rank}; }
};
/// Places the gradient of selected elements in zeros; indices along dim.
Tensor place_selected(const Tensor& grad, const Tensor& indices, const Sizes& sizes, int64_t dim, bool keepdim);
/// The gradient of an extreme value: those that reach it share it evenly.
Tensor share_evenly(const Tensor& grad, const Tensor& x, const Tensor& extreme, const Reduced& over);
/// A reduced tensor's dims, as an argument.
Sizes dims_argument(const Reduced& over);
/// Dims that have an element to choose from, as max and min need.
void require_elements(const ArgsView& m, const Sizes& sizes, const Reduced& over);

/// Gives a reduced tensor its dims of size 1 back, so that it broadcasts against what was reduced.
Tensor restore_dims(const Tensor& reduced, const Sizes& sizes, std::span<const size_t> dims, bool keepdim);

}  // namespace tenon

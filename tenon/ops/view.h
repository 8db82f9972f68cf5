// Views: ops that are an index map and nothing else, their scatters, and what follows from a map for writing and gradients.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

class Registry;
void register_view(Registry& ops);

extern Handle view, reshape, permute, transpose, expand, slice, select, unsqueeze, squeeze_dim, as_strided, diagonal, unfold, unfold_backward, alias, detach,
    view_dtype, slice_scatter, select_scatter, diagonal_scatter, as_strided_scatter, split_tensor, split_with_sizes, unbind, unsafe_view;

/// The base with `source` written through one step of a view, as a new value. The base is what the step was applied to.
Tensor write_through(const remap::Part& step, const Tensor& base, const Tensor& source);
/// Reads a base through a map by functional ops; reshapes copy where the base's strides force it.
Tensor read_through(const IndexMap& map, const Tensor& base);
Tensor read_step(const remap::Part& step, const Tensor& base);
/// The gradient of a view with respect to its base. None where the map stops gradients.
Tensor gradient_through(const IndexMap& map, const TensorMeta& base, const Tensor& grad);
/// Sums a gradient over the dims that broadcasting to its sizes added or repeated.
Tensor sum_to(const Tensor& grad, const Sizes& sizes);

/// Sizes with one -1 filled in.
Sizes inferred_sizes(const Sizes& sizes, SymInt count, const ArgsView& call);

}  // namespace tenon

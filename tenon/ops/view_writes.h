// What follows from a view's index map: writing through it and its gradient; and the scatters these are spelled with.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle slice_scatter, select_scatter, diagonal_scatter, as_strided_scatter;

/// The base with `source` written through one step of a view, as a new value. The base is what the step was applied to.
Tensor write_through(const remap::Part& step, const Tensor& base, const Tensor& source);
/// Reads a base through a map by functional ops; reshapes copy where the base's strides force it.
Tensor read_through(const IndexMap& map, const Tensor& base);
Tensor read_step(const remap::Part& step, const Tensor& base);
/// The gradient of a view with respect to its base. None where the map stops gradients.
Tensor gradient_through(const IndexMap& map, const TensorMeta& base, const Tensor& grad);
/// Sums a gradient over the dims that broadcasting to its sizes added or repeated.
Tensor sum_to(const Tensor& grad, const Sizes& sizes);

}  // namespace tenon

// When a tensor is right: the rule for numbers, and dtype, sizes and strides.
#pragma once
#include <optional>
#include <string>

#include "tests/sweep/recording.h"

namespace tenon::sweep {

/// Nothing where they agree, otherwise what was expected and what came. Strides of dimensions with at most one element,
/// and of tensors without elements, say nothing and are not compared.
std::optional<std::string> meta_differs(const TensorMeta& got, const TensorMeta& want);

/// Elements of a floating tensor may be off by 4 times PyTorch's own error plus a share of the largest element that
/// depends on the dtype; NaNs and infinities, integers and booleans must be the same.
std::optional<std::string> values_differ(const Tensor& got, const Tensor& exact, std::optional<double> own_error);

/// The elements of a real tensor as f64, in row-major order.
std::vector<double> elements(const Tensor& t);

}  // namespace tenon::sweep

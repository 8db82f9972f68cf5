// What batch, layer and group normalization share.
#pragma once
#include <array>

#include "tenon/rules/op_def.h"

namespace tenon {

/// The dtype of statistics: that of the parameters where they are wider than a half precision input.
DType statistics_dtype(const ArgsView& call, std::initializer_list<const char*> parameters);
/// The strides of a normalized result: channels_last where the input is, else contiguous.
Sizes normalized_strides(const TensorMeta& input);
/// A parameter, where it is given, must have these sizes.
void require_parameter(const ArgsView& call, const char* parameter, const Sizes& sizes);

/// What the gradient of a normalization is computed from: tensors that broadcast against the input.
struct NormalizationGradient {
  Tensor grad, input;
  Tensor mean, rstd;              // over the dims `over`, as the forward saved them; none: see fixed_mean
  Tensor weight;                  // none: 1
  Sizes over, parameter_over;     // dims that are normalized together; dims that a parameter's gradient sums over
  Tensor fixed_mean, fixed_rstd;  // statistics that do not depend on the input, in place of its own
};
/// The gradients of (x - mean) * rstd * weight + bias by input, weight and bias, in operators that have gradients
/// themselves. The statistics have the values saved, and are functions of the input again.
std::array<Tensor, 3> normalization_gradient(const NormalizationGradient& of);
/// The results of a gradient operator with an output_mask, in the dtypes and sizes its metas say.
Results masked_results(const Build& b, const std::array<Tensor, 3>& gradients);

}  // namespace tenon

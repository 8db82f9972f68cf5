// What batch, layer and group normalization share.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

/// The dtype of statistics: that of the parameters where they are wider than a half precision input.
DType statistics_dtype(const ArgsView& call, std::initializer_list<const char*> parameters);
/// The strides of a normalized result: channels_last where the input is, else contiguous.
Sizes normalized_strides(const TensorMeta& input);
/// A parameter, where it is given, must have these sizes.
void require_parameter(const ArgsView& call, const char* parameter, const Sizes& sizes);

}  // namespace tenon

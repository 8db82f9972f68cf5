// Normalization over the last dims (layer_norm, rms_norm), over groups of channels, and of weights.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle native_layer_norm, native_group_norm;

/// The dtype of statistics: that of the parameters where they are wider than a half precision input.
DType statistics_dtype(const ArgsView& call, size_t input, std::initializer_list<size_t> parameters);
/// The strides of a normalized result: channels_last where the input is, else contiguous.
Sizes normalized_strides(const TensorMeta& input);
/// Three results of which the mask (an argument) leaves some out.
Metas masked_metas(const ArgsView& call, size_t mask, std::initializer_list<TensorMeta> metas);

}  // namespace tenon

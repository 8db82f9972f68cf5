// What quantized programs are made of: integers q that stand for (q - zero point) · scale.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

/// The least and the largest integer of a dtype that quantized values are kept in; none for other dtypes.
struct QuantizedRange {
  double low = 0, high = 0;
};
std::optional<QuantizedRange> quantized_range(DType dtype);
/// The arguments quant_min and quant_max, which the dtype must hold.
QuantizedRange range_argument(const ArgsView& call, DType dtype);

/// A tensor of one number per channel as it lies beside x: sizes of 1 but for the axis.
Tensor along_axis(const ArgsView& call, const Tensor& per_channel, const Tensor& x, size_t axis);
/// The one element of a tensor, without dimensions.
Tensor only_element(const ArgsView& call, Slot arg);

}  // namespace tenon

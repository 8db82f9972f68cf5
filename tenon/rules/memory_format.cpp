#include "tenon/rules/memory_format.h"

#include "tenon/rules/symbolic_shapes.h"

namespace tenon {
namespace {

// Strides grow in the order channels, innermost space dim, ..., batch.
bool channels_come_last(const TensorMeta& m) {
  size_t rank = m.rank();
  if (m.strides[1] == SymInt(0)) return false;
  SmallVector<size_t, 6> order = {1};
  for (size_t d = rank - 1; d >= 2; --d) order.push_back(d);
  order.push_back(0);
  SymInt least = 0;
  for (size_t d : order) {
    if (m.sizes[d] == SymInt(0)) return false;
    if (!(m.strides[d] == least) && proven(sym::ge(m.strides[d], least)) != true) return false;
    if (d == 0 && least == m.strides[1]) return false;  // N111 and the like: both formats fit
    least = m.strides[d];
    if (!(m.sizes[d] == SymInt(1))) least = least * m.sizes[d];
  }
  return true;
}

}  // namespace

MemoryFormat suggested_format(const TensorMeta& meta) {
  if (meta.rank() == 4 && channels_come_last(meta)) return MemoryFormat::channels_last;
  if (meta.rank() == 5 && channels_come_last(meta)) return MemoryFormat::channels_last_3d;
  return MemoryFormat::contiguous;
}

TensorMeta formatted_like(const TensorMeta& operand, Sizes sizes, DType dtype) {
  TensorMeta out = make_meta(dtype, std::move(sizes), operand.device);
  if (operand.rank() == out.rank()) out.strides = strides_in(suggested_format(operand), out.sizes);
  return out;
}
TensorMeta formatted_like(const TensorMeta& operand, Sizes sizes) {
  return formatted_like(operand, std::move(sizes), operand.dtype);
}

}  // namespace tenon

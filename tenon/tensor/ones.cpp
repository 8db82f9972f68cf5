#include "tenon/tensor/ones.h"

#include <algorithm>

#include "tenon/sym/checked.h"
#include "tenon/tensor/half.h"

namespace tenon {
namespace {

template <class T>
void fill(Tensor& t, int64_t count, T value) {
  std::fill_n(t.mutable_data<T>(), count, value);
}

void fill_ones(Tensor& t, int64_t count) {
  switch (t.dtype()) {
    case DType::boolean:
    case DType::u8:
    case DType::i8: return fill<uint8_t>(t, count, 1);
    case DType::u16:
    case DType::i16: return fill<uint16_t>(t, count, 1);
    case DType::u32:
    case DType::i32: return fill<uint32_t>(t, count, 1);
    case DType::u64:
    case DType::i64: return fill<uint64_t>(t, count, 1);
    case DType::f16: return fill<uint16_t>(t, count, float_to_half(1));
    case DType::bf16: return fill<uint16_t>(t, count, float_to_bfloat(1));
    case DType::f32: return fill<float>(t, count, 1);
    case DType::f64: return fill<double>(t, count, 1);
    default: fail("a tensor of ones of dtype ", t.dtype(), " has to be given");
  }
}

}  // namespace

Tensor ones_tensor(DType dtype, const Sizes& sizes) {
  int64_t count = 1;
  bool empty = false;
  for (SymInt size : sizes) {
    require(size.is_int() && size.as_int() >= 0, "expected constant sizes, got ", sizes);
    empty |= size.as_int() == 0;
  }
  for (SymInt size : sizes) count = empty ? 0 : sym::checked_mul(count, size.as_int());
  if (count < expanded_from) {
    Tensor t = Tensor::empty(dtype, sizes);
    fill_ones(t, count);
    return t;
  }
  Tensor one = Tensor::empty(dtype, {});
  fill_ones(one, 1);
  TensorMeta meta = make_meta(dtype, sizes);
  meta.strides = Sizes(sizes.size(), SymInt(0));
  return one.with_meta(std::move(meta));
}

}  // namespace tenon

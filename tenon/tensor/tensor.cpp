#include "tenon/tensor/tensor.h"

#include <algorithm>
#include <cstring>

#include "tenon/sym/checked.h"
#include "tenon/tensor/half.h"

namespace tenon {

Tensor::Tensor(TensorMeta meta, std::shared_ptr<Storage> storage) : impl_(std::make_shared<Impl>()) {
  impl_->meta = std::move(meta);
  impl_->storage = std::move(storage);
}

Tensor::Tensor(TensorMeta meta, GraphBody* graph, ValueId value) : impl_(std::make_shared<Impl>()) {
  impl_->meta = std::move(meta);
  impl_->graph = graph;
  impl_->value = value;
}

Tensor Tensor::empty(TensorMeta meta) {
  int64_t last = -1;  // elements needed, from the strides
  bool any = true;
  for (size_t i = 0; i < meta.rank(); ++i) {
    int64_t size = meta.sizes[i].as_int();
    require(size >= 0, "tensor: expected sizes that are not negative, got ", meta.sizes);
    require(meta.strides[i].as_int() >= 0, "tensor: expected strides that are not negative, got ", meta.strides);
    if (size == 0) any = false;
    else last = sym::checked_add(last, sym::checked_mul(size - 1, meta.strides[i].as_int()));
  }
  meta.offset = 0;
  int64_t bytes = any ? sym::checked_mul(sym::checked_add(last, 2), static_cast<int64_t>(item_size(meta.dtype))) : 0;
  auto storage = std::make_shared<Storage>(static_cast<size_t>(bytes));
  return Tensor(std::move(meta), std::move(storage));
}

namespace {
template <class T>
Tensor make_number(DType dtype, T value) {
  TensorMeta meta = make_meta(dtype, {});
  meta.wrapped_number = true;
  Tensor t = Tensor::empty(std::move(meta));
  *t.mutable_data<T>() = value;
  return t;
}
}  // namespace

Tensor Tensor::number(double value) { return make_number(DType::f64, value); }
Tensor Tensor::number(int64_t value) { return make_number(DType::i64, value); }
Tensor Tensor::number(bool value) { return make_number(DType::boolean, value); }

void Tensor::fail_none() { fail("a tensor was expected, got None"); }

// An empty tensor may begin anywhere (x[:, 3:] of a tensor without rows): its place is never read.
size_t Tensor::first_byte() const {
  expect(impl_ && impl_->storage != nullptr, "data of a tensor that has none");
  const TensorMeta& meta = impl_->meta;
  int64_t offset = meta.offset.as_int();
  size_t item = item_size(meta.dtype), size = impl_->storage->size();
  if (offset < 0 || static_cast<uint64_t>(offset) >= size / item) [[unlikely]] {
    expect(count(meta.sizes) == SymInt(0), "a tensor ", meta, " at offset ", offset, " of a storage of ", size,
           " bytes");
    return 0;
  }
  return static_cast<size_t>(offset) * item;
}

const std::byte* Tensor::bytes() const {
  size_t first = first_byte();
  return impl_->storage->data() + first;
}

std::byte* Tensor::mutable_bytes() {
  size_t first = first_byte();
  return impl_->storage->mutable_data() + first;
}

Tensor Tensor::with_meta(TensorMeta meta) const { return Tensor(std::move(meta), storage()); }

namespace {
void require_one_element(const Tensor& t) {
  require(t.storage() != nullptr, "a number was expected, got a tensor whose content is not known yet, ", t.meta());
  require(t.numel() == SymInt(1), "a tensor of one element was expected where a number is needed, got ", t.meta());
  require_fits(t.meta(), t.storage()->size(), "a number");
}

// Beyond 64 bits a conversion is undefined: the nearest integer there is, and 0 for NaN.
int64_t truncated(double value) {
  if (value != value) return 0;
  if (value >= 0x1p63) return INT64_MAX;
  if (value < -0x1p63) return INT64_MIN;
  return static_cast<int64_t>(value);
}
}  // namespace

double scalar_value(const Tensor& t) {
  require_one_element(t);
  const std::byte* p = t.bytes();
  switch (t.dtype()) {
    case DType::f64: return *reinterpret_cast<const double*>(p);
    case DType::f32: return static_cast<double>(*reinterpret_cast<const float*>(p));
    case DType::f16: return static_cast<double>(half_to_float(*reinterpret_cast<const uint16_t*>(p)));
    case DType::bf16: return static_cast<double>(bfloat_to_float(*reinterpret_cast<const uint16_t*>(p)));
    default: return static_cast<double>(scalar_integer(t));
  }
}

int64_t scalar_integer(const Tensor& t) {
  require_one_element(t);
  const std::byte* p = t.bytes();
  switch (t.dtype()) {
    case DType::boolean: return *reinterpret_cast<const uint8_t*>(p) != 0;
    case DType::u8: return *reinterpret_cast<const uint8_t*>(p);
    case DType::i8: return *reinterpret_cast<const int8_t*>(p);
    case DType::i16: return *reinterpret_cast<const int16_t*>(p);
    case DType::u16: return *reinterpret_cast<const uint16_t*>(p);
    case DType::i32: return *reinterpret_cast<const int32_t*>(p);
    case DType::u32: return *reinterpret_cast<const uint32_t*>(p);
    case DType::i64:
    case DType::u64: return *reinterpret_cast<const int64_t*>(p);
    case DType::f16:
    case DType::bf16:
    case DType::f32:
    case DType::f64: return truncated(scalar_value(t));
    default: fail("a number was expected, got a tensor of ", t.dtype());
  }
}

void copy_elements(const Tensor& from, Tensor& to) {
  expect(from.dtype() == to.dtype() && from.sizes() == to.sizes(), "copy of ", from.meta(), " to ", to.meta());
  size_t item = item_size(from.dtype());
  size_t rank = from.rank();
  int64_t total = from.numel().as_int();
  if (total == 0) return;
  const std::byte* source = from.bytes();
  std::byte* target = to.mutable_bytes();
  if (is_contiguous(from.meta()) && is_contiguous(to.meta())) {
    std::memmove(target, source, static_cast<size_t>(total) * item);
    return;
  }
  SmallVector<int64_t, 6> at(rank, 0);
  for (int64_t i = 0; i < total; ++i) {
    int64_t a = 0, b = 0;
    for (size_t d = 0; d < rank; ++d) {
      a += at[d] * from.strides()[d].as_int();
      b += at[d] * to.strides()[d].as_int();
    }
    std::memcpy(target + b * static_cast<int64_t>(item), source + a * static_cast<int64_t>(item), item);
    for (size_t d = rank; d-- > 0;) {
      if (++at[d] < from.sizes()[d].as_int()) break;
      at[d] = 0;
    }
  }
}

Tensor contiguous_copy(const Tensor& t) {
  TensorMeta meta = make_meta(t.dtype(), t.sizes());
  meta.requires_grad = t.meta().requires_grad;
  Tensor copy = Tensor::empty(std::move(meta));
  copy_elements(t, copy);
  return copy;
}

void require_fits(const TensorMeta& meta, size_t storage_bytes, std::string_view what) {
  require(meta.sizes.size() == meta.strides.size(), what, ": ", meta.sizes.size(), " sizes but ", meta.strides.size(),
          " strides");
  bool any = true, fits = true;
  int64_t last = 0;
  require(meta.offset.is_int() && meta.offset.as_int() >= 0, what, ": expected a storage offset of 0 or more, got ",
          meta.offset);
  for (size_t i = 0; i < meta.rank(); ++i) {
    require(meta.sizes[i].is_int() && meta.strides[i].is_int(), what, ": expected constant sizes, got ", meta.sizes);
    int64_t size = meta.sizes[i].as_int(), stride = meta.strides[i].as_int();
    require(size >= 0, what, ": expected sizes of 0 or more, got ", meta.sizes);
    require(stride >= 0, what, ": expected strides of 0 or more, got ", meta.strides);
    int64_t step = 0;
    fits &= !__builtin_mul_overflow(std::max<int64_t>(size - 1, 0), stride, &step) &&
            !__builtin_add_overflow(last, step, &last);
    any &= size > 0;
  }
  int64_t needed = 0, start = 0;
  bool starts = !__builtin_mul_overflow(meta.offset.as_int(), static_cast<int64_t>(item_size(meta.dtype)), &start);
  require(starts, what, ": ", meta, " at offset ", meta.offset, " reaches further than 64 bits can say");
  if (!any) return;  // an empty tensor may begin behind the end; Tensor::bytes() never goes there
  fits &= !__builtin_add_overflow(last, meta.offset.as_int(), &last) && !__builtin_add_overflow(last, 1, &last) &&
          !__builtin_mul_overflow(last, static_cast<int64_t>(item_size(meta.dtype)), &needed);
  require(fits, what, ": ", meta, " at offset ", meta.offset, " reaches further than 64 bits can say");
  require(static_cast<uint64_t>(needed) <= storage_bytes, what, ": ", meta, " at offset ", meta.offset, " needs ",
          needed, " bytes, its storage has ", storage_bytes);
}

}  // namespace tenon

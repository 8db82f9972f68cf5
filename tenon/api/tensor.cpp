#include <tenon/operators.h>

#include <cstring>
#include <ostream>

#include "tenon/api/access.h"
#include "tenon/api/recorder.h"
#include "tenon/ops/random.h"
#include "tenon/tensor/lent.h"

namespace tenon::v0 {

using detail::Access;
using detail::fail_call;
using detail::guarded;

static_assert(static_cast<int>(DType::f8_e8m0fnu) == static_cast<int>(tenon::DType::f8_e8m0fnu) &&
              static_cast<int>(DType::f32) == static_cast<int>(tenon::DType::f32) &&
              static_cast<int>(DType::c64) == static_cast<int>(tenon::DType::c64));

namespace {

tenon::DType inner(DType dtype) {
  if (dtype > DType::f8_e8m0fnu) fail_call("there is no dtype number ", static_cast<int>(dtype));
  return static_cast<tenon::DType>(dtype);
}

tenon::Sizes checked_sizes(const std::vector<int64_t>& sizes, DType dtype) {
  tenon::Sizes out;
  int64_t bytes = static_cast<int64_t>(tenon::item_size(inner(dtype)));
  for (int64_t size : sizes) {
    if (size < 0) fail_call("the sizes [", detail::comma_separated(sizes), "] have a negative one");
    if (size > 0 && __builtin_mul_overflow(bytes, size, &bytes))
      fail_call("the sizes [", detail::comma_separated(sizes), "] are more than any memory holds");
    out.push_back(size);
  }
  return out;
}

Tensor made(const std::vector<int64_t>& sizes, DType dtype) {
  return Access::wrap(tenon::Tensor::empty(inner(dtype), checked_sizes(sizes, dtype)));
}

// The types data<T>() may be asked for: the dtype's own, and bits for those that C++ lacks.
bool readable_as(DType have, DType wanted) {
  if (have == wanted) return true;
  bool sixteen_bits = have == DType::f16 || have == DType::bf16;
  bool eight_bits = have >= DType::f8_e4m3fn;
  return (sixteen_bits && wanted == DType::u16) || (eight_bits && wanted == DType::u8);
}

void require_elements(const Tensor& tensor) {
  const tenon::Tensor& own = Access::unwrap(tensor);
  if (own.is_traced())
    fail_call("a tensor ", own.meta(),
              " has no elements while a program is made of what computes it; what the program "
              "does may depend on its sizes, not on its elements");
}

void require_readable(const Tensor& tensor, DType wanted, bool contiguous) {
  require_elements(tensor);
  const tenon::TensorMeta& meta = Access::unwrap(tensor).meta();
  if (!readable_as(tensor.dtype(), wanted))
    fail_call("a tensor ", meta, " has no elements of type ", inner(wanted),
              "; convert it with to(tenon::", inner(wanted), ") first");
  if (contiguous && !tensor.is_contiguous())
    fail_call("a tensor ", meta, " is not contiguous, so it is no span; use contiguous() first");
}

}  // namespace

void detail::retain(TensorBody* body) noexcept { body->handles.fetch_add(1, std::memory_order_relaxed); }
void detail::release(TensorBody* body) noexcept {
  if (body->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) delete body;
}

Tensor Access::wrap(tenon::Tensor tensor) {
  Tensor out;
  if (!tensor) return out;
  out.body_ = detail::Shared(new detail::TensorBody());
  for (tenon::SymInt size : tensor.sizes())
    out.body_->sizes.push_back(size.is_int() ? Size(size.as_int()) : Access::size(size));
  for (tenon::SymInt stride : tensor.strides())
    out.body_->strides.push_back(stride.is_int() ? Size(stride.as_int()) : Access::size(stride));
  out.body_->tensor = std::move(tensor);
  return out;
}

const tenon::Tensor& Access::unwrap(const Tensor& tensor, const char* what) {
  if (!tensor.body_) fail_call(what, " was expected, and this one is none: it holds no tensor");
  return tensor.body_->tensor;
}

DType Tensor::dtype() const { return static_cast<DType>(Access::unwrap(*this).dtype()); }
int64_t Tensor::dim() const { return static_cast<int64_t>(sizes().size()); }
std::span<const Size> Tensor::sizes() const {
  Access::unwrap(*this);
  return {body_->sizes.data(), body_->sizes.size()};
}
std::span<const Size> Tensor::strides() const {
  Access::unwrap(*this);
  return {body_->strides.data(), body_->strides.size()};
}
size_t Tensor::item_size() const { return tenon::item_size(Access::unwrap(*this).dtype()); }

Size Tensor::size(int64_t dim) const {
  int64_t rank = this->dim();
  if (dim < -rank || dim >= rank)
    fail_call("a tensor ", body_->tensor.meta(), " has no dimension ", dim, "; it has ", rank);
  return body_->sizes[static_cast<size_t>(dim < 0 ? dim + rank : dim)];
}

Size Tensor::numel() const {
  Size count = 1;
  for (const Size& size : sizes()) count *= size;
  return count;
}

bool Tensor::is_contiguous() const {
  if (numel() == 0) return true;
  Size dense = 1;
  for (size_t i = body_->sizes.size(); i-- > 0; dense *= body_->sizes[i])
    if (body_->sizes[i] != 1 && body_->strides[i] != dense) return false;
  return true;
}

const void* Tensor::raw_data() const {
  require_elements(*this);
  return Access::unwrap(*this).bytes();
}

const void* Tensor::checked_data(DType wanted, bool contiguous) const {
  require_readable(*this, wanted, contiguous);
  return body_->tensor.bytes();
}

void* Tensor::checked_mutable_data(DType wanted, bool contiguous) {
  require_readable(*this, wanted, contiguous);
  return guarded(ErrorKind::call, [&] { return body_->tensor.mutable_bytes(); });
}

int64_t Tensor::item_integer() const {
  require_elements(*this);
  const tenon::Tensor& t = Access::unwrap(*this);
  if (numel() != 1) fail_call("item() is of tensors with one element, got ", t.meta());
  if (tenon::is_complex(t.dtype())) fail_call("item() of a complex tensor ", t.meta(), " is no real number");
  return tenon::is_floating(t.dtype()) ? static_cast<int64_t>(item_real())
                                       : guarded(ErrorKind::call, [&] { return tenon::scalar_integer(t); });
}

double Tensor::item_real() const {
  require_elements(*this);
  const tenon::Tensor& t = Access::unwrap(*this);
  if (numel() != 1) fail_call("item() is of tensors with one element, got ", t.meta());
  if (tenon::is_complex(t.dtype())) fail_call("item() of a complex tensor ", t.meta(), " is no real number");
  return guarded(ErrorKind::call, [&] { return tenon::scalar_value(t); });
}

Tensor Tensor::operator[](int64_t index) const { return select(0, index); }

Tensor from_blob(void* data, std::vector<int64_t> sizes, DType dtype, Function<void(void*)> deleter) {
  std::vector<int64_t> strides(sizes.size());
  int64_t dense = 1;
  checked_sizes(sizes, dtype);
  for (size_t i = sizes.size(); i-- > 0; dense *= std::max<int64_t>(sizes[i], 1)) strides[i] = dense;
  return from_blob(data, std::move(sizes), std::move(strides), dtype, std::move(deleter));
}

Tensor from_blob(void* data, std::vector<int64_t> sizes, std::vector<int64_t> strides, DType dtype,
                 Function<void(void*)> deleter) {
  return guarded(ErrorKind::call, [&] {
    tenon::TensorMeta meta;
    meta.dtype = inner(dtype);
    meta.sizes = checked_sizes(sizes, dtype);
    size_t item = tenon::item_size(meta.dtype);
    size_t alignment = std::min<size_t>(item, alignof(std::max_align_t));
    tenon::require(strides.size() == sizes.size(), "from_blob: expected one stride per size, got ", strides.size(),
                   " for ", sizes.size());
    int64_t last = 0, count = 1;
    for (size_t i = 0; i < sizes.size(); ++i) {
      tenon::require(strides[i] >= 0, "from_blob: strides are not negative, got ", strides[i]);
      meta.strides.push_back(strides[i]);
      count *= sizes[i];
      int64_t reach = 0;
      bool fits = !__builtin_mul_overflow(std::max<int64_t>(sizes[i] - 1, 0), strides[i], &reach) &&
                  !__builtin_add_overflow(last, reach, &last) && last < (int64_t{1} << 47);
      tenon::require(fits, "from_blob: sizes and strides reach beyond any memory");
    }
    size_t bytes = count == 0 ? 0 : (static_cast<size_t>(last) + 1) * item;
    tenon::require(data != nullptr || bytes == 0, "from_blob: the pointer is null, and the tensor has ", count,
                   " elements");
    tenon::require(reinterpret_cast<uintptr_t>(data) % alignment == 0, "from_blob: elements of ", meta.dtype,
                   " must lie at multiples of ", alignment, " bytes");
    auto storage = tenon::lent_storage({static_cast<std::byte*>(data), bytes},
                                       deleter ? std::function<void(void*)>(std::move(deleter)) : nullptr);
    return Access::wrap(tenon::Tensor(std::move(meta), std::move(storage)));
  });
}

Tensor detail::copied(const void* data, size_t count, std::vector<int64_t> sizes, DType dtype) {
  return guarded(ErrorKind::call, [&] {
    Tensor out = made(sizes, dtype);
    tenon::require(static_cast<uint64_t>(int64_t{out.numel()}) == count, "tensor: the sizes [",
                   detail::comma_separated(sizes), "] are those of ", int64_t{out.numel()}, " values, got ", count);
    if (count > 0) std::memcpy(Access::body(out).tensor.mutable_bytes(), data, count * out.item_size());
    if (Recorder* recorder = current_recorder()) recorder->made(Access::unwrap(out));
    return out;
  });
}

void detail::fail_ragged(size_t row, size_t expected, size_t got) {
  fail_call("tensor: the rows must be of one length; row 0 has ", expected, " values, row ", row, " has ", got);
}

void manual_seed(int64_t seed) {
  guarded(ErrorKind::call, [&] { tenon::seed_random(seed); });
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_string(tensor); }

}  // namespace tenon::v0

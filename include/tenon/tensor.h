// Tensors: handles to elements in memory of our own or of yours.
#pragma once
#include <tenon/arguments.h>
#include <tenon/error.h>
#include <tenon/function.h>
#include <tenon/shared.h>
#include <tenon/size.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

namespace tenon::TENON_INLINE v0 {
enum class DType : std::uint8_t {
  boolean,
  u8,
  i8,
  i16,
  i32,
  i64,
  u16,
  u32,
  u64,
  f16,
  bf16,
  f32,
  f64,
  c32,
  c64,
  c128,
  f8_e4m3fn,
  f8_e5m2,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  f8_e8m0fnu
};
inline constexpr DType boolean = DType::boolean, u8 = DType::u8, i8 = DType::i8, i16 = DType::i16, i32 = DType::i32,
                       i64 = DType::i64, u16 = DType::u16, u32 = DType::u32, u64 = DType::u64, f16 = DType::f16,
                       bf16 = DType::bf16, f32 = DType::f32, f64 = DType::f64, c64 = DType::c64, c128 = DType::c128;

namespace detail {
template <class T>
struct ElementOf;  // no other type can be an element
#define TENON_ELEMENT(type, name)               \
  template <>                                   \
  struct ElementOf<type> {                      \
    static constexpr DType dtype = DType::name; \
  }
TENON_ELEMENT(bool, boolean);
TENON_ELEMENT(std::uint8_t, u8);
TENON_ELEMENT(std::int8_t, i8);
TENON_ELEMENT(std::int16_t, i16);
TENON_ELEMENT(std::int32_t, i32);
TENON_ELEMENT(std::int64_t, i64);
TENON_ELEMENT(long long, i64);
TENON_ELEMENT(std::uint16_t, u16);
TENON_ELEMENT(std::uint32_t, u32);
TENON_ELEMENT(std::uint64_t, u64);
TENON_ELEMENT(float, f32);
TENON_ELEMENT(double, f64);
#undef TENON_ELEMENT
}  // namespace detail

template <class T>
concept Element = requires {
  detail::ElementOf<T>::dtype;
};

namespace detail {
[[noreturn]] TENON_PUBLIC void fail_narrowed(std::int64_t value, std::size_t bytes);
/// The integer in a type that must be able to hold it.
template <class T>
T narrowed(std::int64_t value) {
  T out = static_cast<T>(value);
  if (static_cast<std::int64_t>(out) != value || (out < T{}) != (value < 0)) fail_narrowed(value, sizeof(T));
  return out;
}
}  // namespace detail

/// A handle: copies share the elements, as in PyTorch. Reading one tensor from many threads is safe; writing it is
/// not. Its methods are the operators (tenon/operators.h) whose first argument is called self, and those below.
class TENON_PUBLIC Tensor {
 public:
  Tensor() noexcept = default;  // none

  bool defined() const noexcept { return static_cast<bool>(body_); }
  explicit operator bool() const noexcept { return defined(); }
  bool is_same(const Tensor& other) const noexcept { return body_.get() == other.body_.get(); }  // the same handle
  DType dtype() const;
  std::int64_t dim() const;
  Size size(std::int64_t dim) const;  // negative: from the end
  std::span<const Size> sizes() const;
  std::span<const Size> strides() const;  // in elements
  Size numel() const;
  std::size_t item_size() const;  // in bytes
  bool is_contiguous() const;

  /// The address of the first element. T must be the dtype's type; the bits of f16 and bf16 are std::uint16_t.
  template <Element T>
  const T* data() const {
    return static_cast<const T*>(checked_data(detail::ElementOf<T>::dtype, false));
  }
  template <Element T>
  T* mutable_data() {
    return static_cast<T*>(checked_mutable_data(detail::ElementOf<T>::dtype, false));
  }
  const void* raw_data() const;
  /// All elements in order; the tensor must be contiguous.
  template <Element T>
  std::span<const T> span() const {
    return {static_cast<const T*>(checked_data(detail::ElementOf<T>::dtype, true)), static_cast<std::size_t>(numel())};
  }
  template <Element T>
  std::span<T> mutable_span() {
    return {static_cast<T*>(checked_mutable_data(detail::ElementOf<T>::dtype, true)),
            static_cast<std::size_t>(numel())};
  }
  /// A copy of the elements in order, whatever the strides.
  template <Element T>
  std::vector<T> vector() const {
    Tensor dense = contiguous();
    const T* first = dense.data<T>();
    return std::vector<T>(first, first + std::int64_t{numel()});
  }
  /// The number of a tensor with one element, converted as static_cast does.
  template <class T>
  requires std::is_arithmetic_v<T> T item()
  const {
    if constexpr (std::is_same_v<T, bool>) return item_integer() != 0;
    else if constexpr (std::is_integral_v<T>) return detail::narrowed<T>(item_integer());
    else return static_cast<T>(item_real());
  }

  // Gradients (tenon/autograd.h).
  bool requires_grad() const;
  const Tensor& requires_grad_(Flag requires_grad = true) const;  // of a floating point leaf
  bool is_leaf() const;
  Tensor grad() const;                      // none where there is none; shared, not copied
  void set_grad(const Tensor& grad) const;  // none to forget it
  /// Adds the gradients of this tensor to those of the leaves it was computed from. Where it has more than one element,
  /// they are weighted by `gradient`.
  void backward(const Tensor& gradient = {}, Flag retain_graph = false, Flag create_graph = false) const;
  void retain_grad() const;  // keeps grad() of a result of a call, too
  /// The hook is called with the gradient of this tensor when it is known; a tensor that it returns takes its place.
  /// The number is for remove_hook.
  std::int64_t register_hook(Function<Tensor(const Tensor& grad)> hook) const;
  std::int64_t register_post_accumulate_grad_hook(Function<void(const Tensor& leaf)> hook) const;
  bool remove_hook(std::int64_t number) const;
  std::string grad_fn() const;    // MulBackward0; empty for a leaf
  std::uint64_t version() const;  // counts writes to its memory

  /// The slice at an index of the first dimension: select(0, index).
  Tensor operator[](std::int64_t index) const;

#include <tenon/tensor_methods.h>  // IWYU pragma: export

 private:
  friend struct detail::Access;
  const void* checked_data(DType wanted, bool contiguous) const;
  void* checked_mutable_data(DType wanted, bool contiguous);
  std::int64_t item_integer() const;
  double item_real() const;
  detail::Shared<detail::TensorBody> body_;
};

inline TensorList::TensorList(const std::vector<Tensor>& items) noexcept : items_(items.data()), size_(items.size()) {}

/// A tensor over memory of yours, without copying: row-major, or with strides in elements. Programs that write the
/// tensor write that memory. The deleter is called when the last tensor over it is gone; without one the memory must
/// outlive them.
TENON_PUBLIC Tensor from_blob(void* data, std::vector<std::int64_t> sizes, DType dtype,
                              Function<void(void*)> deleter = {});
TENON_PUBLIC Tensor from_blob(void* data, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides,
                              DType dtype, Function<void(void*)> deleter = {});

namespace detail {
TENON_PUBLIC Tensor copied(const void* data, std::size_t count, std::vector<std::int64_t> sizes, DType dtype);
[[noreturn]] TENON_PUBLIC void fail_ragged(std::size_t row, std::size_t expected, std::size_t got);
}  // namespace detail

/// A copy of the values, with one dimension, or with the sizes given.
template <Element T>
Tensor tensor(std::span<const T> values, std::vector<std::int64_t> sizes) {
  return detail::copied(values.data(), values.size(), std::move(sizes), detail::ElementOf<T>::dtype);
}
template <Element T>
Tensor tensor(const std::vector<T>& values, std::vector<std::int64_t> sizes) {
  if constexpr (std::is_same_v<T, bool>) {
    std::vector<std::uint8_t> bytes(values.begin(), values.end());
    return detail::copied(bytes.data(), bytes.size(), std::move(sizes), DType::boolean);
  } else {
    return tensor(std::span<const T>(values), std::move(sizes));
  }
}
template <Element T>
Tensor tensor(const std::vector<T>& values) {
  return tensor(values, {static_cast<std::int64_t>(values.size())});
}
template <Element T>
Tensor tensor(std::initializer_list<T> values) {
  return tensor(std::span<const T>(values.begin(), values.size()), {static_cast<std::int64_t>(values.size())});
}
template <Element T>
Tensor tensor(std::initializer_list<std::initializer_list<T>> rows) {
  std::vector<T> values;
  std::size_t columns = rows.size() == 0 ? 0 : rows.begin()->size(), number = 0;
  for (const auto& row : rows) {
    if (row.size() != columns) detail::fail_ragged(number, columns, row.size());
    values.insert(values.end(), row.begin(), row.end());
    ++number;
  }
  return tensor(values, {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)});
}
template <Element T>
Tensor scalar(T value) {
  return tensor(std::span<const T>(&value, 1), {});
}

/// Starts the numbers that random operators draw anew, for the whole process. They are not those of PyTorch's streams.
TENON_PUBLIC void manual_seed(std::int64_t seed);

/// As print() shows it in PyTorch: tensor([1., 2.]).
TENON_PUBLIC std::string to_string(const Tensor& tensor);
TENON_PUBLIC std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

}  // namespace tenon::TENON_INLINEv0

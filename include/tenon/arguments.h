// What operators take besides tensors: numbers, truths and short lists of them. They are made where a call is written
// and read before it returns; nobody stores one.
#pragma once
#include <tenon/size.h>
#include <tenon/visibility.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace tenon::TENON_INLINE v0 {
class Tensor;

/// A boolean, an integer or a real number.
class Scalar {
 public:
  enum class Kind : std::uint8_t { truth, integer, real };
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr Scalar(T number) noexcept {
    if constexpr (std::is_same_v<T, bool>) kind_ = Kind::truth, integer_ = number;
    else if constexpr (std::is_integral_v<T>) kind_ = Kind::integer, integer_ = static_cast<std::int64_t>(number);
    else kind_ = Kind::real, real_ = static_cast<double>(number);
  }
  Scalar(const Size& number) noexcept : integer_(number.is_symbolic() ? 0 : std::int64_t{number}), size_(number) {}
  constexpr Kind kind() const noexcept { return kind_; }
  const Size& size() const noexcept { return size_; }  // symbolic: a size of a program that is being made
  constexpr std::int64_t integer() const noexcept {
    return kind_ == Kind::real ? static_cast<std::int64_t>(real_) : integer_;
  }
  constexpr double real() const noexcept { return kind_ == Kind::real ? real_ : static_cast<double>(integer_); }

 private:
  Kind kind_ = Kind::integer;
  std::int64_t integer_ = 0;
  double real_ = 0;
  Size size_;
};

class OptionalScalar {
 public:
  constexpr OptionalScalar(std::nullopt_t) noexcept {}
  constexpr OptionalScalar(Scalar number) noexcept : number_(number), given_(true) {}
  OptionalScalar(const Size& number) noexcept : number_(number), given_(true) {}
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) constexpr OptionalScalar(T number) noexcept
      : number_(number), given_(true) {}
  constexpr bool given() const noexcept { return given_; }
  constexpr const Scalar& number() const noexcept { return number_; }  // 0 where none is given

 private:
  Scalar number_ = 0;
  bool given_ = false;
};

/// A truth, and nothing that merely converts to one: std(x, 1) means the dimension.
class Flag {
 public:
  template <std::same_as<bool> T>
  constexpr Flag(T value) noexcept : value_(value) {}
  constexpr operator bool() const noexcept { return value_; }

 private:
  bool value_;
};

/// Integers: {2, 3}, sizes, a vector, or one number that stands for a list of it. By default none.
class IntList {
 public:
  constexpr IntList() noexcept = default;
  constexpr IntList(std::nullopt_t) noexcept {}
  template <Integer T>
  constexpr IntList(T number) noexcept : one_(number), count_(1), given_(true) {}
  IntList(const Size& number) noexcept : one_(number), count_(1), given_(true) {}
  IntList(std::initializer_list<Size> items) noexcept : IntList(items.begin(), items.size()) {}
  IntList(const std::vector<Size>& items) noexcept : IntList(items.data(), items.size()) {}
  IntList(std::span<const Size> items) noexcept : IntList(items.data(), items.size()) {}
  IntList(const std::vector<std::int64_t>& items) noexcept : IntList(items.data(), items.size()) {}
  IntList(std::span<const std::int64_t> items) noexcept : IntList(items.data(), items.size()) {}
  std::size_t size() const noexcept { return count_; }
  Size operator[](std::size_t i) const noexcept { return sizes_ ? sizes_[i] : integers_ ? Size(integers_[i]) : one_; }
  bool given() const noexcept { return given_; }

 protected:
  IntList(const Size* sizes, std::size_t count) noexcept : sizes_(sizes), count_(count), given_(true) {}
  IntList(const std::int64_t* integers, std::size_t count) noexcept
      : integers_(integers), count_(count), given_(true) {}

 private:
  const Size* sizes_ = nullptr;
  const std::int64_t* integers_ = nullptr;
  Size one_;
  std::size_t count_ = 0;
  bool given_ = false;
};
/// Several integers: of overloads that take one or several, the one that takes several.
class IntItems : public IntList {
 public:
  IntItems(std::initializer_list<Size> items) noexcept : IntList(items.begin(), items.size()) {}
  IntItems(const std::vector<Size>& items) noexcept : IntList(items.data(), items.size()) {}
  IntItems(std::span<const Size> items) noexcept : IntList(items.data(), items.size()) {}
  IntItems(const std::vector<std::int64_t>& items) noexcept : IntList(items.data(), items.size()) {}
  IntItems(std::span<const std::int64_t> items) noexcept : IntList(items.data(), items.size()) {}
};

/// Real numbers. By default none.
class FloatList {
 public:
  FloatList() noexcept = default;
  FloatList(std::nullopt_t) noexcept {}
  FloatList(std::initializer_list<double> items) noexcept : size_(items.size()), given_(true) {
    items_ = items.begin();
  }
  FloatList(const std::vector<double>& items) noexcept : items_(items.data()), size_(items.size()), given_(true) {}
  std::size_t size() const noexcept { return size_; }
  const double* data() const noexcept { return items_; }
  bool given() const noexcept { return given_; }

 private:
  const double* items_ = nullptr;
  std::size_t size_ = 0;
  bool given_ = false;
};

/// Tensors: {x, y} or a vector. One that is none stands for an absent one where the operator allows for it.
class TensorList {
 public:
  TensorList() noexcept = default;
  TensorList(std::initializer_list<Tensor> items) noexcept : size_(items.size()) { items_ = items.begin(); }
  TensorList(const std::vector<Tensor>& items) noexcept;
  std::size_t size() const noexcept { return size_; }
  const Tensor* data() const noexcept { return items_; }

 private:
  const Tensor* items_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tenon::TENON_INLINEv0

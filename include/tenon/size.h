// The size of a dimension: an integer, which stays a symbol while export_program makes a program for many sizes.
#pragma once
#include <tenon/visibility.h>

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace tenon::TENON_INLINE v0 {
namespace detail {
struct Access;
}

template <class T>
concept Integer = std::integral<T> && !std::is_same_v<T, bool>;

/// Counts as an integer does; / and % round down. In a program that is being made, arithmetic gives what the program
/// computes from its inputs' sizes, a comparison decides by the example inputs and becomes a condition of the program,
/// and so does a conversion to an integer: the size is then fixed. `auto n = x.size(0)` keeps it open.
class TENON_PUBLIC Size {
 public:
  constexpr Size() noexcept = default;
  constexpr Size(const Size& other) noexcept : value_(other.value_), expression_(other.expression_) {
    if (expression_) hold(expression_);
  }
  constexpr Size(Size&& other) noexcept
      : value_(other.value_), expression_(std::exchange(other.expression_, nullptr)) {}
  constexpr Size& operator=(Size other) noexcept {
    value_ = other.value_;
    std::swap(expression_, other.expression_);
    return *this;
  }
  constexpr ~Size() {
    if (expression_) drop(expression_);
  }
  template <Integer T>
  constexpr Size(T value) noexcept : value_(static_cast<std::int64_t>(value)) {}
  operator std::int64_t() const { return expression_ ? fixed() : value_; }
  explicit operator bool() const { return *this != 0; }
  bool is_symbolic() const noexcept { return expression_ != nullptr; }

  enum class Operation : std::uint8_t { add, subtract, multiply, divide, remainder };
  enum class Relation : std::uint8_t { equal, unequal, less, less_or_equal };

#define TENON_SIZE_OPERATION(symbol, name)                                                        \
  friend Size operator symbol(const Size& a, const Size& b) { return of(Operation::name, a, b); } \
  template <Integer T>                                                                            \
  friend Size operator symbol(const Size& a, T b) {                                               \
    return of(Operation::name, a, Size(b));                                                       \
  }                                                                                               \
  template <Integer T>                                                                            \
  friend Size operator symbol(T a, const Size& b) {                                               \
    return of(Operation::name, Size(a), b);                                                       \
  }                                                                                               \
  Size& operator symbol##=(const Size& b) { return *this = of(Operation::name, *this, b); }
  TENON_SIZE_OPERATION(+, add)
  TENON_SIZE_OPERATION(-, subtract)
  TENON_SIZE_OPERATION(*, multiply)
  TENON_SIZE_OPERATION(/, divide)
  TENON_SIZE_OPERATION(%, remainder)
#undef TENON_SIZE_OPERATION
  friend Size operator-(const Size& a) { return of(Operation::subtract, Size(), a); }

#define TENON_SIZE_RELATION(symbol, name, first, second)                                                     \
  friend bool operator symbol(const Size& a, const Size& b) { return holds(Relation::name, first, second); } \
  template <Integer T>                                                                                       \
  friend bool operator symbol(const Size& a, T number) {                                                     \
    Size b(number);                                                                                          \
    return holds(Relation::name, first, second);                                                             \
  }                                                                                                          \
  template <Integer T>                                                                                       \
  friend bool operator symbol(T number, const Size& b) {                                                     \
    Size a(number);                                                                                          \
    return holds(Relation::name, first, second);                                                             \
  }
  TENON_SIZE_RELATION(==, equal, a, b)
  TENON_SIZE_RELATION(!=, unequal, a, b)
  TENON_SIZE_RELATION(<, less, a, b)
  TENON_SIZE_RELATION(<=, less_or_equal, a, b)
  TENON_SIZE_RELATION(>, less, b, a)
  TENON_SIZE_RELATION(>=, less_or_equal, b, a)
#undef TENON_SIZE_RELATION

 private:
  friend struct detail::Access;
  std::int64_t fixed() const;
  static Size of(Operation operation, const Size& a, const Size& b);
  static bool holds(Relation relation, const Size& a, const Size& b);
  static void hold(const void* expression) noexcept;
  static void drop(const void* expression) noexcept;

  std::int64_t value_ = 0;            // of a symbolic one: for the example inputs
  const void* expression_ = nullptr;  // which it holds, as handles do
};

}  // namespace tenon::TENON_INLINEv0

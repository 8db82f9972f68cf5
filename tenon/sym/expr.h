// Symbolic integers. An Expr is one word: a small integer, or a pointer to an interned node, which lives as long as an
// Expr or another node holds it. Expressions are kept in one canonical form (sums of products, like terms merged,
// arguments in an order that depends on names only), so equal words are equal expressions and text made from them never
// depends on addresses.
#pragma once
#include <atomic>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "tenon/sym/checked.h"

namespace tenon::sym {

enum class Kind : uint8_t {
  integer,
  rational,  // an exact fraction; args: numerator, denominator
  real,      // a double constant
  boolean,
  symbol,
  add,
  mul,
  pow,
  max,
  min,
  mod,             // sign of the divisor, as in Python
  floor_div,       // integers, rounds down
  true_div,        // int / int -> float
  float_true_div,  // float / float
  float_pow,
  to_float,
  trunc,        // float -> int, toward zero
  trunc_float,  // the same, but the result stays a float
  ceil,
  floor,
  round,          // float -> int, halves to even
  round_decimal,  // args: value, digits
  bit_and,
  bit_or,
  lshift,
  rshift,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  logical_and,
  logical_or,
  logical_not,
  piecewise,     // args: value, condition, value, condition, ...
  unknown_call,  // a function we only carry along: name and args
};

/// What sympy would have been told about a symbol. Part of a symbol's identity.
struct SymbolTraits {
  bool integer = true;
  bool real = false;      // real=True was said; an integer need not say it
  bool positive = false;  // sizes are; trusted as "not negative" only, because a size may turn out to be 0
  bool nonnegative = false;
  bool operator==(const SymbolTraits&) const = default;
};

struct Node;
/// What a node begins with: how many hold it.
struct Held {
  Held() = default;
  Held(const Held&) {}  // a copy is held by nobody yet
  Held& operator=(const Held&) = delete;
  mutable std::atomic<uint32_t> holders = 0;
};

class Expr {
 public:
  Expr() : word_(tag(0)) {}
  Expr(const Expr& other) : word_(other.word_) {
    if (!is_small()) held()->holders.fetch_add(1, std::memory_order_relaxed);
  }
  Expr(Expr&& other) noexcept : word_(std::exchange(other.word_, tag(0))) {}
  Expr& operator=(const Expr& other) {
    Expr copy(other);
    std::swap(word_, copy.word_);
    return *this;
  }
  Expr& operator=(Expr&& other) noexcept {
    std::swap(word_, other.word_);
    return *this;
  }
  ~Expr() {
    if (!is_small()) release();
  }
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>) Expr(T value) {
    if constexpr (sizeof(T) == 8 && !std::is_signed_v<T>) {
      word_ = value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
                  ? from_int(static_cast<int64_t>(value))
                  : reject_unsigned(value);
    } else {
      word_ = from_int(static_cast<int64_t>(value));
    }
  }
  Expr(bool) = delete;
  Expr(double) = delete;

  static Expr real(double value);
  static Expr boolean(bool value);
  static Expr rational(int64_t numerator, int64_t denominator);
  static Expr symbol(std::string_view name, SymbolTraits traits = {});
  static Expr unknown_call(std::string_view name, std::span<const Expr> args);

  bool is_int() const { return is_small() || is_large_int(); }
  int64_t as_int() const { return is_small() ? small() : large_int(); }  // expects is_int()
  std::optional<int64_t> constant() const { return is_int() ? std::optional(as_int()) : std::nullopt; }

  Kind kind() const;
  bool is(Kind k) const { return kind() == k; }
  bool is_symbol() const { return kind() == Kind::symbol; }
  bool is_number() const;         // integer, rational or real
  bool is_integer_typed() const;  // its value is an integer whatever its symbols are
  bool is_boolean_typed() const;
  bool is_nonnegative() const;  // certainly >= 0, by its form alone
  // Both are part of the node: good as long as the expression is held.
  std::span<const Expr> args() const&;
  std::span<const Expr> args() const&& = delete;
  std::string_view name() const&;  // of a symbol or an unknown call
  std::string_view name() const&& = delete;
  SymbolTraits traits() const;
  double real_value() const;  // of any number
  bool boolean_value() const;

  friend bool operator==(const Expr& a, const Expr& b) { return a.word_ == b.word_; }
  size_t hash() const;  // of the structure, the same in every run

  bool is_small() const { return word_ & 1; }
  int64_t small() const { return static_cast<int64_t>(word_) >> 1; }
  const Node* node() const { return reinterpret_cast<const Node*>(word_); }  // only where !is_small()
  /// Takes over one holder's share of a node.
  explicit Expr(const Node* node) : word_(reinterpret_cast<uintptr_t>(node)) {}

 private:
  static uintptr_t tag(int64_t value) { return (static_cast<uintptr_t>(value) << 1) | 1; }
  static uintptr_t from_int(int64_t value) {
    constexpr int64_t limit = int64_t{1} << 62;
    return value >= -limit && value < limit ? tag(value) : intern_large(value);
  }
  static uintptr_t intern_large(int64_t value);
  const Held* held() const { return reinterpret_cast<const Held*>(word_); }
  void release() const;
  [[noreturn]] static uintptr_t reject_unsigned(uint64_t value);
  bool is_large_int() const;
  int64_t large_int() const;

  uintptr_t word_;
};
static_assert(sizeof(Expr) == sizeof(void*));

/// How many nodes are held now, in the whole process.
size_t interned_nodes();

/// The order in which canonical forms keep their arguments: by kind, name and arguments, never by address.
std::strong_ordering compare(const Expr& a, const Expr& b);

/// The n-ary forms; adding or multiplying many at once costs no intermediate nodes.
Expr sum(std::span<const Expr> terms);
Expr product(std::span<const Expr> factors);

Expr add_symbolic(const Expr& a, const Expr& b);
Expr subtract_symbolic(const Expr& a, const Expr& b);
Expr multiply_symbolic(const Expr& a, const Expr& b);
Expr floor_div_symbolic(const Expr& a, const Expr& b);
Expr mod_symbolic(const Expr& a, const Expr& b);

inline Expr operator+(const Expr& a, const Expr& b) {
  return a.is_small() && b.is_small() ? Expr(a.small() + b.small()) : add_symbolic(a, b);
}
inline Expr operator-(const Expr& a, const Expr& b) {
  return a.is_small() && b.is_small() ? Expr(a.small() - b.small()) : subtract_symbolic(a, b);
}
inline Expr operator*(const Expr& a, const Expr& b) {
  return a.is_small() && b.is_small() ? Expr(checked_mul(a.small(), b.small())) : multiply_symbolic(a, b);
}
inline Expr operator-(const Expr& a) { return a.is_small() ? Expr(-a.small()) : multiply_symbolic(a, Expr(-1)); }
inline Expr& operator+=(Expr& a, const Expr& b) { return a = a + b; }
inline Expr& operator-=(Expr& a, const Expr& b) { return a = a - b; }
inline Expr& operator*=(Expr& a, const Expr& b) { return a = a * b; }

inline Expr floor_div(const Expr& a, const Expr& b) {
  return a.is_small() && b.is_small() ? Expr(checked_floordiv(a.small(), b.small())) : floor_div_symbolic(a, b);
}
inline Expr mod(const Expr& a, const Expr& b) {
  return a.is_small() && b.is_small() ? Expr(checked_mod(a.small(), b.small())) : mod_symbolic(a, b);
}
inline Expr ceil_div(const Expr& a, const Expr& b) { return floor_div(a + b - 1, b); }  // for b > 0

Expr max(std::span<const Expr> items);
Expr min(std::span<const Expr> items);
Expr max(const Expr& a, const Expr& b);
Expr min(const Expr& a, const Expr& b);
Expr pow(const Expr& base, const Expr& exponent);

Expr true_div(const Expr& a, const Expr& b);
Expr float_true_div(const Expr& a, const Expr& b);
Expr float_pow(const Expr& base, const Expr& exponent);
Expr to_float(const Expr& a);
Expr trunc(const Expr& a);
Expr trunc_float(const Expr& a);
Expr ceil(const Expr& a);
Expr floor(const Expr& a);
Expr round(const Expr& a);
Expr round_decimal(const Expr& a, const Expr& digits);
Expr bit_and(const Expr& a, const Expr& b);
Expr bit_or(const Expr& a, const Expr& b);
Expr lshift(const Expr& a, const Expr& b);
Expr rshift(const Expr& a, const Expr& b);

/// Conditions, folded to a boolean where constant or certain from the form of both sides.
Expr eq(const Expr& a, const Expr& b);
Expr ne(const Expr& a, const Expr& b);
Expr lt(const Expr& a, const Expr& b);
Expr le(const Expr& a, const Expr& b);
Expr gt(const Expr& a, const Expr& b);
Expr ge(const Expr& a, const Expr& b);
Expr logical_and(std::span<const Expr> conditions);
Expr logical_or(std::span<const Expr> conditions);
Expr logical_and(const Expr& a, const Expr& b);
Expr logical_or(const Expr& a, const Expr& b);
Expr logical_not(const Expr& a);

/// values_and_conditions: value, condition, value, condition, ...; the first condition that holds picks the value.
Expr piecewise(std::span<const Expr> values_and_conditions);
Expr where(const Expr& condition, const Expr& a, const Expr& b);

/// a / b where b divides a for every value of the symbols; nothing where that cannot be seen.
std::optional<Expr> exact_quotient(const Expr& a, const Expr& b);

/// The expression of `kind` over `args`, through the functions above. For kinds that have arguments.
Expr make(Kind kind, std::span<const Expr> args);

}  // namespace tenon::sym

namespace tenon {
using SymInt = sym::Expr;
}

template <>
struct std::hash<tenon::sym::Expr> {
  size_t operator()(const tenon::sym::Expr& e) const { return e.hash(); }
};

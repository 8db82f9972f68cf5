// The numbers an expression may hold or evaluate to: an exact fraction, a double, or a truth value.
#pragma once
#include "tenon/sym/expr.h"

namespace tenon::sym {

struct Number {
  enum class Type : uint8_t { exact, real, boolean };
  Type type = Type::exact;
  int64_t n = 0, d = 1;  // exact: n / d in lowest terms, d > 0; boolean: n is 0 or 1
  double r = 0;

  static Number of(int64_t n) { return {.n = n}; }
  static Number fraction(int64_t n, int64_t d);
  static Number real(double r) { return {.type = Type::real, .r = r}; }
  static Number boolean(bool b) { return {.type = Type::boolean, .n = b}; }

  bool is_integer() const { return type == Type::exact && d == 1; }
  bool is_exact(int64_t value) const { return is_integer() && n == value; }
  bool is_real() const { return type == Type::real; }
  double as_double() const { return type == Type::real ? r : static_cast<double>(n) / static_cast<double>(d); }
  bool truth() const { return is_real() ? r != 0 : n != 0; }
};

Number operator+(Number a, Number b);
Number operator-(Number a, Number b);
Number operator*(Number a, Number b);
/// The same; nothing where the result leaves 64 bits.
std::optional<Number> try_add(Number a, Number b);
std::optional<Number> try_negate(Number a);
/// -1, 0, 1; 2 where a NaN makes the two incomparable.
int compare_numbers(Number a, Number b);

/// Any number or boolean constant.
std::optional<Number> number_of(const Expr& e);
Expr expr_of(Number n);

/// One operation on numbers: what folding and evaluation share. `name` is for unknown calls, of which some are known.
Number apply(Kind kind, std::string_view name, std::span<const Number> args);
/// Whether apply can compute an unknown call of this name.
bool is_known_call(std::string_view name);

}  // namespace tenon::sym

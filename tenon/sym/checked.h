// Arithmetic on int64_t that reports overflow and division by zero as an Error. Division and remainder round as
// Python's do.
#pragma once
#include <cstdint>
#include <limits>

namespace tenon::sym {

[[noreturn]] void fail_overflow(const char* operation, int64_t a, int64_t b);
[[noreturn]] void fail_zero_division(const char* operation, int64_t a);

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_add_overflow(a, b, &out)) [[unlikely]]
    fail_overflow("+", a, b);
  return out;
}

inline int64_t checked_sub(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_sub_overflow(a, b, &out)) [[unlikely]]
    fail_overflow("-", a, b);
  return out;
}

inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t out;
  if (__builtin_mul_overflow(a, b, &out)) [[unlikely]]
    fail_overflow("*", a, b);
  return out;
}

inline int64_t checked_floordiv(int64_t a, int64_t b) {
  if (b == 0) [[unlikely]]
    fail_zero_division("//", a);
  if (b == -1) return checked_sub(0, a);  // the one quotient that can overflow
  int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

inline int64_t checked_mod(int64_t a, int64_t b) {
  if (b == 0) [[unlikely]]
    fail_zero_division("%", a);
  if (b == -1) return 0;  // INT64_MIN % -1 traps
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// a to the power b, for b >= 0.
int64_t checked_pow(int64_t a, int64_t b);
/// a * 2^b, for b >= 0.
int64_t checked_shift_left(int64_t a, int64_t b);

}  // namespace tenon::sym

// Pieces that several of the functions in math.h share.
#pragma once
#include <limits>
#include <span>

#include "tenon/compile/math.h"

namespace tenon::compile {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A number as an unevaluated sum: |lo| is at most half an ulp of hi.
struct Double {
  Val hi, lo;
};

inline Val horner(std::span<const double> coefficients, Val x) {
  Val p = x.builder->constant(x.type(), coefficients.back());
  for (size_t i = coefficients.size() - 1; i-- > 0;) p = fma(p, x, coefficients[i]);
  return p;
}
/// An odd function of x >= 0 by sixteen polynomials around multiples of width: rows are coefficients, and the first
/// polynomial gives what is added to x.
template <size_t n>
Val in_pieces(const double (&rows)[n][16], double width, Val x) {
  Builder& b = *x.builder;
  Val k = round_even(x * (1 / width)), u = fma(k, -width, x), which = convert(k, Type::i32);
  Val p = b.pick(x.type(), rows[n - 1], which);
  for (size_t i = n - 1; i-- > 1;) p = fma(p, u, b.pick(x.type(), rows[i], which));
  return fma(p, u, select(k == 0.0, u, b.pick(x.type(), rows[0], which)));
}
/// a + b and the error of it, where |a| >= |b| or a is 0.
inline Double fast_sum(Val a, Val b) {
  Val hi = a + b;
  return {hi, (a - hi) + b};
}
inline Double exact_sum(Val a, Val b) {
  Val hi = a + b, c = hi - a;
  return {hi, (a - (hi - c)) + (b - c)};
}
inline Double exact_product(Val a, Val b) {
  Val hi = a * b;
  return {hi, fma(a, b, -hi)};
}
/// The clamped value, or NaN: min and max give their second operand then.
inline Val clamp(Val x, double low, double high) { return binary(Op::max, low, binary(Op::min, high, x)); }
inline Val scale(Val x, Val n) { return binary(Op::scale, x, n); }
inline Type bits_type(Type t) { return t == Type::f32 ? Type::i32 : Type::i64; }
inline Val in_f64(Val (*f)(Val), Val x) { return convert(f(convert(x, Type::f64)), Type::f32); }

/// e^(x.hi + x.lo) in f64.
Val exp_of_sum(Double x);
/// e^x in f64, to the precision of f32.
Val exp_of(Val x);

/// log(x) = k ln 2 + m, for positive x in f64; `extra` is added to x before.
struct Logarithm {
  Val k;
  Double m;
};
Logarithm logarithm(Val x, Val extra);
Double natural(const Logarithm& l);

}  // namespace tenon::compile

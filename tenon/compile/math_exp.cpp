// exp and what is made of it, and erf.
#include "tenon/compile/math_parts.h"
#include "tenon/compile/math_tables.h"

namespace tenon::compile {

/// e^x = 2^n (1 + r + p r^2) with |r| < 0.35.
struct Exponential {
  Val r, p, n;
};
static Exponential exponential(Val x) {
  bool single = x.type() == Type::f32;
  x = single ? clamp(x, -104, 89) : clamp(x, -746, 711);
  Val n = round_even(x * tables::log2_e[0]);
  const double* ln2 = single ? tables::ln2_parts_f32 : tables::ln2_parts;
  Val r = fma(n, -ln2[1], fma(n, -ln2[0], x));
  Val p = single ? horner(tables::exp_f32, r) : horner(tables::exp_f64, r);
  return {r, p, n};
}
static Val mantissa(const Exponential& e) { return 1.0 + fma(e.p, e.r * e.r, e.r); }

Val exp(Val x) {
  Exponential e = exponential(x);
  return scale(mantissa(e), e.n);
}

// Half an ulp and little more in f32, for what rounds twice more.
static Val exp_sharp(Val x) {
  x = clamp(x, -104, 89);
  Val n = round_even(x * tables::log2_e[0]);
  const double* ln2 = tables::ln2_parts_f32;
  Val first = fma(n, -ln2[0], x), r = fma(n, -ln2[1], first), r_lo = fma(n, -ln2[1], first - r);
  Double sum = fast_sum(x.builder->constant(Type::f32, 1), r);
  return scale(sum.hi + fma(horner(tables::expm1_f32, r), r * r, sum.lo + r_lo), n);
}

Val exp_of_sum(Double x) {
  Val n = round_even(x.hi * tables::log2_e[0]);
  Val r = fma(n, -tables::ln2_parts[1], fma(n, -tables::ln2_parts[0], x.hi)) + x.lo;
  Val m = fma(horner(tables::exp_f64, r), r * r, r);
  return scale(1.0 + m, n);
}

Val exp_of(Val x) {
  Val n = round_even(x * tables::log2_e[0]), r = fma(n, -0.6931471805599453, x);
  return scale(1.0 + fma(horner(tables::expm1_f32, r), r * r, r), n);
}

Val exp2(Val x) {
  bool single = x.type() == Type::f32;
  Val y = single ? clamp(x, -151, 129) : clamp(x, -1080, 1025);
  Val n = round_even(y);
  Val r = (y - n) * 0.6931471805599453;
  Val p = single ? horner(tables::expm1_f32, r) : horner(tables::exp_f64, r);
  return scale(1.0 + fma(p, r * r, r), n);
}

Val expm1(Val x) {
  bool single = x.type() == Type::f32;
  Val y = clamp(x, -50, single ? 89 : 709.9), n = round_even(y * tables::log2_e[0]);
  const double* ln2 = single ? tables::ln2_parts_f32 : tables::ln2_parts;
  // e^r - 1 in two parts: where n is 1, half of it cancels.
  Val first = fma(n, -ln2[0], y), r = fma(n, -ln2[1], first), r_lo = fma(n, -ln2[1], first - r);
  Val p = single ? horner(tables::expm1_f32, r) : horner(tables::exp_f64, r);
  Double m = fast_sum(r, fma(p, r * r, r_lo));
  Val half = scale(x.builder->constant(x.type(), 0.5), n);  // half of 2^n, which always exists
  Val result = fma(half, m.lo, fma(half, m.hi, half - 0.5));
  return select(x == 0.0, x, result + result);
}

// In f32 the sum's error is taken back to stay within 2 ulp. Where e^-x has no number PyTorch gives 0.
Val sigmoid(Val x) {
  if (x.type() == Type::f64) return 1.0 / (1.0 + exp(-x));
  Val e = exp_sharp(-x), sum = 1.0 + e, q = 1.0 / sum;
  Val error = 1.0 - (sum - e);
  return select(sum < infinity, fma(-q * error, q, q), q);
}
Val silu(Val x) { return x / (1.0 + exp(-x)); }

Val tanh(Val x) {
  Val a = abs(x);
  if (x.type() == Type::f32) {
    Val y = in_pieces(tables::tanh_f32, 0.58203125, binary(Op::min, 9.01, a));
    return copysign(select(a >= 9.01, 1.0, y), x);
  }
  Val t = expm1(binary(Op::min, 44.0, a + a));
  return copysign(t / (t + 2.0), x);
}

// Beyond 22 the smaller exponential is below half an ulp; half of the larger one exists where it does not itself.
Val sinh(Val x) {
  if (x.type() == Type::f32) return in_f64(sinh, x);
  Val a = abs(x);
  Val t = expm1(binary(Op::min, 40.0, a));
  Exponential e = exponential(a);
  Val half = scale(mantissa(e), e.n - 1.0);
  return copysign(select(a < 22.0, 0.5 * (t + t / (t + 1.0)), half), x);
}
Val cosh(Val x) {
  if (x.type() == Type::f32) return in_f64(cosh, x);
  Exponential e = exponential(abs(x));
  Val half = scale(mantissa(e), e.n - 1.0);
  return half + 0.25 / half;
}

Val erf(Val x) {
  bool single = x.type() == Type::f32;
  double end = single ? 3.93 : 5.93;
  Val a = abs(x), y = binary(Op::min, end, a);
  y = single ? in_pieces(tables::erf_f32, 0.25390625, y) : in_pieces(tables::erf_f64, 0.3828125, y);
  return copysign(select(a >= end, 1.0, y), x);
}

Val gelu(Val x) {
  Val half = 0.5 * x;
  return fma(half, erf(x * 0.7071067811865476), half);
}
Val gelu_tanh(Val x) {
  Val half = 0.5 * x;
  return fma(half, tanh(x * fma(x * x, 0.7978845608028654 * 0.044715, 0.7978845608028654)), half);
}

}  // namespace tenon::compile

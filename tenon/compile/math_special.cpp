// erfc, its inverse, and the gamma functions: not within 2 ulp everywhere, see math.h.
#include "tenon/compile/math_parts.h"
#include "tenon/compile/math_tables.h"

namespace tenon::compile {

constexpr double pi = 3.141592653589793;

template <size_t n>
static Val piecewise(const double (&rows)[n][16], double width, Val v) {
  Builder& b = *v.builder;
  Val k = round_even(v * (1 / width)), u = fma(k, -width, v), which = convert(k, Type::i32);
  Val p = b.pick(v.type(), rows[n - 1], which);
  for (size_t i = n - 1; i-- > 0;) p = fma(p, u, b.pick(v.type(), rows[i], which));
  return p;
}

// Beyond 1/2 in two parts, e^(-x^2) and what is left of it.
Val erfc(Val x) {
  if (x.type() == Type::f32) return in_f64(erfc, x);
  Val a = clamp(abs(x), 0.5, 27.5), inverse = 1.0 / a;
  Val near = piecewise(tables::erfcx_near, 0.1015625, binary(Op::min, 1.55, a - 0.5));
  Val far = piecewise(tables::erfcx_far, 0.0166015625, binary(Op::min, 0.25, inverse * inverse)) * inverse;
  Double square = exact_product(a, a);
  Val tail = exp_of_sum({-square.hi, -square.lo}) * select(a < 2.0, near, far);
  Val outside = select(x < 0.0, 2.0 - tail, tail);
  return select(abs(x) < 0.5, 1.0 - erf(x), outside);
}

// Two of Halley's steps from a starting value that is good to three digits.
Val erfinv(Val y) {
  if (y.type() == Type::f32) return in_f64(erfinv, y);
  Val a = abs(y);
  Val inside = binary(Op::min, 0x1.fffffffffffffp-1, a);
  Val w = log1p(-inside * inside);
  constexpr double c = 0.147;
  Val t = 2 / (pi * c) + 0.5 * w;
  Val x = sqrt(sqrt(fma(t, t, w * (-1 / c))) - t);
  for (int step = 0; step < 2; ++step) {
    Val error = select(x > 0.5, (1.0 - inside) - erfc(x), erf(x) - inside);
    Val slope = (2 / 1.7724538509055159) * exp(-(x * x));
    x = x - error / fma(x, error, slope);
  }
  x = select(a < 1e-8, a * 0.886226925452758, x);
  x = select(a == 1.0, infinity, x);
  return copysign(select(a <= 1.0, x, nan), y);
}

Val digamma(Val x) {
  if (x.type() == Type::f32) return in_f64(digamma, x);
  Builder& b = *x.builder;
  Val reflected = x < 0.0;
  Val fraction = x - floor(x);
  Val start = select(reflected, -pi / tan(select(x > -0.5, x, fraction) * pi), b.constant(Type::f64, 0));
  Val from = select(reflected, 1.0 - x, x);
  Vals up = b.loop_while(0, 10, {{from < 10.0}, {from}, {start}}, [&](Val, const Vals& s) -> Vals {
    Val next = s[1] + 1.0;
    return {next < 10.0, next, s[2] - 1.0 / s[1]};
  });
  constexpr double series[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
  Val z = 1.0 / (up[1] * up[1]);
  Val y = up[2] + log(up[1]) - 0.5 / up[1] - z * horner(series, z);
  y = select(reflected & (fraction == 0.0), nan, y);
  y = select(x == 0.0, copysign(b.constant(Type::f64, infinity), -x), y);
  return select(x == infinity, x, y);
}

Val lgamma(Val x) {
  if (x.type() == Type::f32) return in_f64(lgamma, x);
  Builder& b = *x.builder;
  Val reflected = x < 0.5;
  Val from = select(reflected, 1.0 - x, x);
  Val one = b.constant(Type::f64, 1);
  Vals up = b.loop_while(0, 10, {{from < 10.0}, {from}, {one}}, [&](Val, const Vals& s) -> Vals {
    Val next = s[1] + 1.0;
    return {next < 10.0, next, s[2] * s[1]};
  });
  constexpr double series[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156};
  Val inverse = 1.0 / up[1], z = inverse * inverse;
  Val l = log(up[1]);
  Val y = fma(up[1] - 0.5, l - 1.0, 0.4189385332046727) + inverse * horner(series, z) - log(up[2]);
  // log(pi) - log(|sin(pi x)|) - y; sin of the fraction, which is exact.
  Val fraction = x - floor(x);
  Val nearest = select(abs(x) < 0.5, abs(x), binary(Op::min, fraction, 1.0 - fraction)), tiny = nearest < 0x1p-30;
  Val sine = log(select(tiny, nearest, sin(pi * nearest)));
  Val mirrored = select(tiny, 0.0, b.constant(Type::f64, 1.1447298858494002)) - sine - y;
  y = select(reflected, mirrored, y);
  y = select((x <= 0.0) & (fraction == 0.0), infinity, y);
  y = select(abs(x) == infinity, infinity, y);
  return select((x == 1.0) | (x == 2.0), 0.0, y);
}

}  // namespace tenon::compile

// sin, cos, tan and their inverses. An argument loses its multiples of pi / 2 by subtraction up to a bound, beyond it
// by multiplying with as many bits of 2 / pi as matter: a loop that is left at once where no lane needs it.
#include "tenon/compile/math_parts.h"
#include "tenon/compile/math_tables.h"

namespace tenon::compile {
namespace {

/// x = quadrant * pi / 2 + r, |r| <= pi / 4.
struct Reduced {
  Double r;
  Val quadrant;  // i32, of which the low two bits count
};

Val piece(Val index) {
  Builder& b = *index.builder;
  std::span<const double> all(tables::two_over_pi);
  Val first = b.pick(Type::f64, all.subspan(0, 16), index), second = b.pick(Type::f64, all.subspan(16, 16), index),
      third = b.pick(Type::f64, all.subspan(32, 16), index);
  return select(index < 16, first, select(index < 32, second, third));
}

// For finite x in f64 of 2^16 and more. Products of 27 and 26 bits are exact, and so is what is left of each modulo 4.
Vals reduce_large(Val x) {
  Builder& b = *x.builder;
  Val small = x * 0x1p-200;
  Val high = bits_as(bits_as(small, Type::i64) & b.integer(Type::i64, ~int64_t{0x3ffffff}), Type::f64);
  Val low = small - high;
  Val exponent = convert((bits_as(x, Type::i64) >> 52) & b.integer(Type::i64, 0x7ff), Type::i32) - 1023;
  // Pieces whose products are multiples of 8 are skipped: floor((exponent - 55) / 26), by a multiplication.
  Val first = binary(Op::shift_sign, binary(Op::max, exponent - 55, b.integer(Type::i32, 0)) * 2521, 16);
  Val zero = b.constant(Type::f64, 0);
  Vals sum = b.loop(0, 8, {{zero}, {zero}, {first}}, [&](Val, const Vals& s) -> Vals {
    Val p = piece(s[2]);
    Double total{s[0], s[1]};
    for (Val part : {high, low}) {
      Val t = part * p;
      t = fma(round_even(t * 0.25), -4.0, t);
      Double next = exact_sum(total.hi, t);
      total = fast_sum(next.hi, next.lo + total.lo);
    }
    return {total.hi, total.lo, s[2] + 1};
  });
  Val n = round_even(sum[0]);
  Double f = fast_sum(sum[0] - n, sum[1]);
  Double r = exact_product(f.hi, b.constant(Type::f64, tables::half_pi_whole[0]));
  r.lo = r.lo + fma(f.hi, tables::half_pi_whole[1], f.lo * tables::half_pi_whole[0]);
  Double sharp = fast_sum(r.hi, r.lo);
  return {sharp.hi, sharp.lo, convert(n, Type::i32)};
}

Reduced reduce(Val x) {
  Builder& b = *x.builder;
  bool single = x.type() == Type::f32;
  Val n = round_even(x * 0.6366197723675814);
  Double r;
  if (single) {
    r.hi = fma(n, -tables::half_pi_f32[2], fma(n, -tables::half_pi_f32[1], fma(n, -tables::half_pi_f32[0], x)));
    r.lo = b.constant(Type::f32, 0);
  } else {
    Val y = fma(n, -tables::half_pi[0], x), w = n * tables::half_pi[1];
    Val first = y - w;
    r = fast_sum(first, fma(n, -tables::half_pi[2], (y - first) - w));
  }
  double bound = single ? 0x1p17 : 0x1p20;
  Val a = abs(x), large = (a > bound) & (a < infinity);
  Val never = x != x;  // ends the loop; not a constant, so that it varies as x does
  Vals done = b.loop_while(0, 1, {{large}, {r.hi}, {r.lo}, {convert(n, Type::i32)}}, [&](Val, const Vals&) -> Vals {
    Vals exact = reduce_large(convert(x, Type::f64));
    if (single) {
      exact[0] = convert(exact[0] + exact[1], Type::f32);
      exact[1] = b.constant(Type::f32, 0);
    }
    return {never, exact[0], exact[1], exact[2]};
  });
  return {{done[1], done[2]}, done[3]};
}

Val sin_around_0(Double r) {
  Val z = r.hi * r.hi;
  if (z.type() == Type::f32) return fma(z * r.hi, horner(tables::sin_f32, z), r.hi);
  return r.hi + fma(z * r.hi, horner(tables::sin_f64, z), fma(-0.5 * z, r.lo, r.lo));
}
Val cos_around_0(Double r) {
  Val z = r.hi * r.hi, half = 0.5 * z, w = 1.0 - half;
  Val rest = z * z * (z.type() == Type::f32 ? horner(tables::cos_f32, z) : horner(tables::cos_f64, z));
  return w + (((1.0 - w) - half) + (rest - r.hi * r.lo));
}

Val flip_sign(Val x, Val where) { return select(where, -x, x); }
Val bit(Val quadrant, int which) { return (quadrant & which) != 0; }

Val atan_positive(Val a) {
  // Around 0, 1 and infinity: the angle is that much plus atan(numerator / denominator).
  Val large = a > 2.414213562373095, middle = a > 0.4142135623730951;
  Val t = select(large, -1.0, select(middle, a - 1.0, a)) / select(large, a, select(middle, a + 1.0, 1.0));
  Val zero = a.builder->constant(a.type(), 0);
  Val base = select(large, tables::half_pi_whole[0], select(middle, tables::half_pi_whole[0] / 2, zero));
  Val base_lo = select(large, tables::half_pi_whole[1], select(middle, tables::half_pi_whole[1] / 2, zero));
  Val z = t * t;
  return base + (t + fma(z * t, horner(tables::atan_f64, z), base_lo));
}

Val asin_small(Val x, Val z) { return fma(z * x, horner(tables::asin_f64, z), x); }

// Twice asin(sqrt((1 - a) / 2)) = acos(a) for 1/2 <= a <= 1.
Double acos_upper(Val a) {
  Val z = (1.0 - a) * 0.5, s = sqrt(z);
  Val s_lo = select(s > 0.0, fma(-s, s, z) / (s + s), 0.0);
  Val rest = fma(z * s, horner(tables::asin_f64, z), s_lo);
  return {s + s, rest + rest};
}

}  // namespace

Val sin(Val x) {
  Reduced reduced = reduce(x);
  Val y = select(bit(reduced.quadrant, 1), cos_around_0(reduced.r), sin_around_0(reduced.r));
  return select(abs(x) < 0x1p-30, x, flip_sign(y, bit(reduced.quadrant, 2)));
}
Val cos(Val x) {
  Reduced reduced = reduce(x);
  Val y = select(bit(reduced.quadrant, 1), sin_around_0(reduced.r), cos_around_0(reduced.r));
  return flip_sign(y, bit(reduced.quadrant + 1, 2));
}
Val tan(Val x) {
  if (x.type() == Type::f32) return in_f64(tan, x);
  Reduced reduced = reduce(x);
  Val s = sin_around_0(reduced.r), c = cos_around_0(reduced.r), odd = bit(reduced.quadrant, 1);
  return select(abs(x) < 0x1p-30, x, select(odd, -c, s) / select(odd, s, c));
}

Val atan(Val x) {
  if (x.type() == Type::f32) return in_f64(atan, x);
  return copysign(atan_positive(abs(x)), x);
}

Val asin(Val x) {
  if (x.type() == Type::f32) return in_f64(asin, x);
  Val a = abs(x);
  Double upper = acos_upper(a);
  Val far = tables::half_pi_whole[0] - upper.hi;
  far = far + (((tables::half_pi_whole[0] - far) - upper.hi) + (tables::half_pi_whole[1] - upper.lo));
  return copysign(select(a <= 0.5, asin_small(a, a * a), far), x);
}
Val acos(Val x) {
  if (x.type() == Type::f32) return in_f64(acos, x);
  Val a = abs(x);
  Double upper = acos_upper(a);
  Val near = tables::half_pi_whole[0] - (asin_small(x, x * x) - tables::half_pi_whole[1]);
  Val positive = upper.hi + upper.lo;
  Val negative = 2 * tables::half_pi_whole[0] - (upper.hi + (upper.lo - 2 * tables::half_pi_whole[1]));
  return select(a <= 0.5, near, select(x > 0.0, positive, negative));
}

Val atan2(Val y, Val x) {
  if (y.type() == Type::f32) return convert(atan2(convert(y, Type::f64), convert(x, Type::f64)), Type::f32);
  Val a = abs(y), c = abs(x);
  Val both = (a == infinity) & (c == infinity);
  Val q = select(both, 1.0, a / c);
  Val angle = select((a == 0.0) & (c == 0.0), 0.0, atan_positive(q));
  Val left = bits_as(x, Type::i64) < x.builder->integer(Type::i64, 0);
  angle = select(left, 2 * tables::half_pi_whole[0] - (angle - 2 * tables::half_pi_whole[1]), angle);
  return select((x != x) | (y != y), nan, copysign(angle, y));
}

}  // namespace tenon::compile

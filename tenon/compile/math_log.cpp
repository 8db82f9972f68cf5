// log and what is made of it, and pow.
#include "tenon/compile/math_parts.h"
#include "tenon/compile/math_tables.h"

namespace tenon::compile {

constexpr double ln2 = 0.6931471805599453;

/// x = 2^k m with m between the roots of 1/2 and 2, for positive x in f64.
struct Split {
  Val k, m;
};
static Split split(Val x, bool may_be_denormal) {
  Builder& b = *x.builder;
  Val offset = b.constant(Type::f64, 0x1p52 + 1024), from = x;
  if (may_be_denormal) {
    Val tiny = x < 0x1p-1022;
    from = select(tiny, x * 0x1p54, x);
    offset = select(tiny, 0x1p52 + 1024 + 54, offset);
  }
  Val bits = bits_as(from, Type::i64);
  Val root = b.integer(Type::i64, 0x3fe6a09e667f3bcd);  // the square root of 1/2
  constexpr int64_t bias = int64_t{1024} << 52;
  Val k = (bits - root + b.integer(Type::i64, bias)) >> 52;
  Val m = bits_as(bits - (k << 52) + b.integer(Type::i64, bias), Type::f64);
  Val whole = bits_as(k | b.integer(Type::i64, 0x4330000000000000), Type::f64);  // 2^52 + k
  return {whole - offset, m};
}

// Around 1 everything rests on s = f / (2 + f), whose series 2 s + 2/3 s^3 + ... is summed in two parts: the error is
// below 2^-64, so that pow may multiply it by a thousand.
Logarithm logarithm(Val x, Val extra) {
  Builder& b = *x.builder;
  auto [whole, m] = split(x, true);
  Double f{m - 1.0, b.constant(Type::f64, 0)};
  if (extra.builder) f = fast_sum(f.hi, scale(extra, -whole));

  Val t = 2.0 + f.hi, t_lo = (f.hi - (t - 2.0)) + f.lo;
  Val inverse = 1.0 / t, s = f.hi * inverse;
  Val s_lo = (fma(-s, t, f.hi) + f.lo - s * t_lo) * inverse;
  Val z = s * s, z_lo = fma(s, s, -z) + 2.0 * s * s_lo;
  Val tail = z * horner(tables::log_f64, z);
  Val w = tables::two_thirds[0] + tail, w_lo = ((tables::two_thirds[0] - w) + tail) + tables::two_thirds[1];
  Double zw = exact_product(z, w);
  zw.lo = zw.lo + (z * w_lo + z_lo * w);
  Double cubic = exact_product(s, zw.hi);
  cubic.lo = cubic.lo + (s * zw.lo + s_lo * zw.hi);
  Double sum = fast_sum(s + s, cubic.hi);
  sum.lo = sum.lo + (2.0 * s_lo + cubic.lo);
  return {whole, sum};
}

Double natural(const Logarithm& l) {
  Double sum = fast_sum(l.k * tables::ln2_parts[0], l.m.hi);
  return {sum.hi, sum.lo + fma(l.k, tables::ln2_parts[1], l.m.lo)};
}

// log(m) to 2^-38, enough for results in f32.
static Val log_around_1(Val m) {
  Val f = m - 1.0, s = f / (2.0 + f), z = s * s;
  Val series = fma(z, horner(std::span(tables::log_f64).first(5), z), tables::two_thirds[0]);
  return fma(s * z, series, s + s);
}

// What every logarithm gives at the ends.
static Val at_ends(Val x, Val y) {
  y = select(x == infinity, x, y);
  y = select(x == 0.0, -infinity, y);
  return select(x >= 0.0, y, nan);
}

Val log(Val x) {
  if (x.type() == Type::f64) {
    Double l = natural(logarithm(x, {}));
    return at_ends(x, l.hi + l.lo);
  }
  Builder& b = *x.builder;
  Val tiny = x < 0x1p-126;
  Val bits = bits_as(select(tiny, x * 0x1p23, x), Type::i32);
  Val k = binary(Op::shift_sign, bits - b.integer(Type::i32, 0x3f3504f3), 23);
  Val f = bits_as(bits - (k << 23), Type::f32) - 1.0;
  Val n = convert(k, Type::f32) - select(tiny, 23.0, b.constant(Type::f32, 0));
  Val z = f * f;
  Val rest = fma(z * f, horner(tables::log_f32, f), fma(n, tables::ln2_parts_f32[1], -0.5 * z));
  return at_ends(x, fma(n, tables::ln2_parts_f32[0], f + rest));
}

Val log2(Val x) {
  if (x.type() == Type::f32) {
    auto [k, m] = split(convert(x, Type::f64), false);
    return at_ends(x, convert(fma(log_around_1(m), tables::log2_e[0], k), Type::f32));
  }
  Logarithm l = logarithm(x, {});
  Double p = exact_product(l.m.hi, x.builder->constant(Type::f64, tables::log2_e[0]));
  p.lo = p.lo + fma(l.m.hi, tables::log2_e[1], l.m.lo * tables::log2_e[0]);
  Double sum = fast_sum(l.k, p.hi);
  return at_ends(x, sum.hi + (sum.lo + p.lo));
}

Val log10(Val x) {
  if (x.type() == Type::f32) {
    auto [k, m] = split(convert(x, Type::f64), false);
    return at_ends(x, convert(fma(k, ln2, log_around_1(m)) * tables::log10_e[0], Type::f32));
  }
  Double l = natural(logarithm(x, {}));
  Double p = exact_product(l.hi, x.builder->constant(Type::f64, tables::log10_e[0]));
  return at_ends(x, p.hi + (p.lo + fma(l.hi, tables::log10_e[1], l.lo * tables::log10_e[0])));
}

Val log1p(Val x) {
  if (x.type() == Type::f32) {
    auto [k, m] = split(1.0 + convert(x, Type::f64), false);
    Val near = convert(fma(k, ln2, log_around_1(m)), Type::f32);
    near = select(x == -1.0, -infinity, select(abs(x) < 0x1p-26, x, near));
    return select(x >= -1.0, select(x == infinity, x, near), nan);
  }
  Double u = exact_sum(x.builder->constant(Type::f64, 1), x);
  Double l = natural(logarithm(u.hi, u.lo));
  Val y = select(abs(x) < 0x1p-54, x, l.hi + l.lo);
  y = select(x == infinity, x, y);
  y = select(x == -1.0, -infinity, y);
  return select(x >= -1.0, y, nan);
}

// For a >= 0; the sum is formed in two parts, because log1p passes an error of its argument on.
Val asinh(Val x) {
  if (x.type() == Type::f32) return in_f64(asinh, x);
  Val a = abs(x);
  Val y = binary(Op::min, 0x1p30, a);
  Val root = sqrt(fma(y, y, 1.0));
  Val q = y * y / (1.0 + root);
  Double sum = fast_sum(y, q);
  Val large = a > 0x1p29;  // there asinh is log(2 a)
  Double u = exact_sum(x.builder->constant(Type::f64, 1), sum.hi);
  Logarithm l = logarithm(select(large, a, u.hi), select(large, 0.0, u.lo + sum.lo));
  l.k = select(large, l.k + 1.0, l.k);
  Double n = natural(l);
  Val result = select(a == infinity, a, n.hi + n.lo);
  return copysign(select(a < 0x1p-28, a, result), x);
}

Val acosh(Val x) {
  if (x.type() == Type::f32) return in_f64(acosh, x);
  Val t = binary(Op::min, 0x1p30, x) - 1.0;
  Double square = exact_product(t, t + 2.0);
  Val root = sqrt(square.hi);
  Val root_lo = select(root > 0.0, (fma(-root, root, square.hi) + square.lo) / (root + root), 0.0);
  Double sum = exact_sum(t, root);
  sum.lo = sum.lo + root_lo;
  Double u = exact_sum(x.builder->constant(Type::f64, 1), sum.hi);
  Val large = x > 0x1p29;
  Logarithm l = logarithm(select(large, x, u.hi), select(large, 0.0, u.lo + sum.lo));
  l.k = select(large, l.k + 1.0, l.k);
  Double n = natural(l);
  Val y = select(x == infinity, x, n.hi + n.lo);
  return select(x >= 1.0, y, nan);
}

Val atanh(Val x) {
  if (x.type() == Type::f32) return in_f64(atanh, x);
  Val a = abs(x);
  // (1 + a) / (1 - a) = 1 + q, q = 2 a / (1 - a) with its error.
  Double below = exact_sum(x.builder->constant(Type::f64, 1), -a);
  Val twice = a + a, q = twice / below.hi;
  Val q_lo = (fma(-q, below.hi, twice) - q * below.lo) / below.hi;
  Double u = exact_sum(x.builder->constant(Type::f64, 1), q);
  Double n = natural(logarithm(u.hi, u.lo + q_lo));
  Val y = select(a < 0x1p-28, a, 0.5 * (n.hi + n.lo));
  y = select(a == 1.0, infinity, y);
  return copysign(select(a <= 1.0, y, nan), x);
}

static Val integer_pow(Val x, Val y) {
  Builder& b = *x.builder;
  Type type = x.type();
  Val one = b.integer(type, 1), zero = b.integer(type, 0);
  Vals done = b.loop_while(0, 64, {{y > zero}, {one}, {x}, {y}}, [&](Val, const Vals& s) -> Vals {
    Val rest = s[3] >> 1;
    return {rest > zero, select((s[3] & one) != zero, s[1] * s[2], s[1]), s[2] * s[2], rest};
  });
  Val odd = (y & one) != zero;
  Val negative = select(x == one, one, select(x == -one, select(odd, -one, one), zero));
  return select(y < zero, negative, done[1]);
}

Val pow(Val x, Val y) {
  if (is_int(x.type())) return integer_pow(x, y);
  bool single = x.type() == Type::f32;
  x = convert(x, Type::f64);
  y = convert(y, Type::f64);
  Val a = abs(x), c = clamp(y, -0x1p80, 0x1p80), result;
  if (single) {
    auto [k, m] = split(a, false);
    result = exp_of(clamp(c * fma(k, ln2, log_around_1(m)), -200, 200));
  } else {
    Double l = natural(logarithm(a, {}));
    Double p = exact_product(c, l.hi);
    p.lo = select(abs(p.hi) < 800.0, fma(c, l.lo, p.lo), 0.0);
    p.hi = clamp(p.hi, -800, 800);
    result = exp_of_sum(p);
  }
  Val up = y > 0.0;
  result = select(a == 0.0, select(up, x.builder->constant(Type::f64, 0), infinity), result);
  result = select(a == infinity, select(up, a, 0.0), result);
  Val half = y * 0.5;
  Val whole = trunc(y) == y, odd = whole & (trunc(half) != half);
  Val negative = bits_as(x, Type::i64) < x.builder->integer(Type::i64, 0);
  result = select(negative & odd, -result, result);
  result = select((x < 0.0) & ~whole & (a != infinity), nan, result);
  result = select((x != x) | (y != y), nan, result);
  result = select((y == 0.0) | (x == 1.0), 1.0, result);
  return convert(result, single ? Type::f32 : Type::f64);
}

}  // namespace tenon::compile

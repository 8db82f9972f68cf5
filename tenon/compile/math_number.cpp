// Comparisons that know NaN, remainders, neighbours, random bits.
#include <cstdint>

#include "tenon/compile/math_parts.h"

namespace tenon::compile {

static Val sign_bit(Builder& b, Type type) {
  return b.integer(bits_type(type), type == Type::f32 ? INT32_MIN : INT64_MIN);
}

Val min_nan(Val a, Val b) {
  Val m = binary(Op::min, a, b);
  return is_float(m.type()) ? select(a != a, a, m) : m;
}
Val max_nan(Val a, Val b) {
  Val m = binary(Op::max, a, b);
  return is_float(m.type()) ? select(a != a, a, m) : m;
}
Val min_number(Val a, Val b) {
  Val m = binary(Op::min, a, b);
  return is_float(m.type()) ? select(b != b, a, m) : m;
}
Val max_number(Val a, Val b) {
  Val m = binary(Op::max, a, b);
  return is_float(m.type()) ? select(b != b, a, m) : m;
}

Val copysign(Val magnitude, Val sign) {
  Type type = sign.type(), bits = bits_type(type);
  Val mask = sign_bit(*sign.builder, type);
  return bits_as((bits_as(magnitude, bits) & ~mask) | (bits_as(sign, bits) & mask), type);
}
Val sign(Val x) {
  Val zero = x.builder->constant(x.type(), 0);
  return select(x > zero, 1, select(x < zero, -1, zero));
}
Val rsqrt(Val x) { return 1.0 / sqrt(x); }
Val reciprocal(Val x) { return 1.0 / x; }
Val is_nan(Val x) { return x != x; }
Val is_inf(Val x) {
  if (is_int(x.type())) return x != x;
  return abs(x) == infinity;
}

Val hypot(Val x, Val y) {
  Type type = x.type();
  Val a = abs(convert(x, Type::f64)), b = abs(convert(y, Type::f64));
  Val infinite = (a == infinity) | (b == infinity), result;
  if (type == Type::f32) {
    result = sqrt(fma(a, a, b * b));
  } else {
    Val larger = max_nan(a, b);
    Val factor = select(larger > 0x1p500, 0x1p-600, select(larger < 0x1p-500, 0x1p600, x.builder->constant(type, 1)));
    Val back = select(larger > 0x1p500, 0x1p600, select(larger < 0x1p-500, 0x1p-600, x.builder->constant(type, 1)));
    Val p = a * factor, q = b * factor;
    Double pp = exact_product(p, p), qq = exact_product(q, q), sum = exact_sum(pp.hi, qq.hi);
    result = sqrt(sum.hi + (sum.lo + (pp.lo + qq.lo))) * back;
  }
  return convert(select(infinite, infinity, result), type);
}

Val nextafter(Val x, Val towards) {
  Type type = x.type(), bits = bits_type(type);
  Builder& b = *x.builder;
  Val as_bits = bits_as(x, bits), one = b.integer(bits, 1);
  Val away = select(x > 0.0, towards > x, towards < x);
  Val stepped = bits_as(as_bits + select(away, one, -one), type);
  Val smallest = bits_as((bits_as(towards, bits) & sign_bit(b, type)) | one, type);
  Val result = select(x == 0.0, smallest, stepped);
  result = select(x == towards, towards, result);
  return select((x != x) | (towards != towards), nan, result);
}

namespace {

Val exponent_of(Val x) {  // biased; of denormals the true one
  Type bits = bits_type(x.type());
  bool single = x.type() == Type::f32;
  Val tiny = x < (single ? 0x1p-126 : 0x1p-1022);
  Val scaled = select(tiny, x * (single ? 0x1p30 : 0x1p60), x);
  Val e = bits_as(scaled, bits) >> (single ? 23 : 52);
  return e - select(tiny, single ? 30 : 60, x.builder->integer(bits, 0));
}

}  // namespace

// Quotients of few bits at a time leave an exact remainder; a quotient that was rounded up is mended.
Val fmod(Val x, Val y) {
  if (is_int(x.type())) return binary(Op::rem, x, y);
  Type type = x.type();
  bool single = type == Type::f32;
  Builder& b = *x.builder;
  int step = single ? 20 : 48;
  Val a = abs(x), d = abs(y);
  Val valid = (a < infinity) & (d > 0.0) & (d < infinity);
  Val divisor_exponent = exponent_of(d);
  Vals done = b.loop_while(0, 64, {{valid & (a >= d)}, {a}}, [&](Val, const Vals& s) -> Vals {
    Val r = s[1];
    Val by = exponent_of(r) - divisor_exponent - step;
    by = binary(Op::max, by, b.integer(bits_type(type), 0));
    Val e = convert(convert(by, Type::i32), type);
    Val divisor = scale(d, e);
    Val q = trunc(r / divisor);
    Val rest = fma(-q, divisor, r);
    rest = select(rest < 0.0, rest + divisor, rest);
    return {rest >= d, rest};
  });
  Val result = copysign(done[1], x);
  Val undefined = (a == infinity) | (d == 0.0) | (x != x) | (y != y);
  return select(undefined, nan, result);
}

namespace {

/// The divisor where it is positive, known, and better dealt with than by dividing; else 0.
int64_t known_divisor(Val x, Val y) {
  const Bits* bits = x.type() == Type::i64 ? x.builder->constant_bits(y) : nullptr;
  if (!bits) return 0;
  const int64_t by = static_cast<int64_t>(*bits);
  const bool power = (by & (by - 1)) == 0, varying = x.builder->value(x.id).varying;
  return by > 0 && by < (int64_t{1} << 52) && (power || varying) ? by : 0;
}

/// No instruction divides integers in lanes. Numbers of 52 bits are divided as f64: a quotient that is not whole is
/// further from the next whole number than rounding moves it. Others are rare.
Val floor_div_by(Val x, Val y, int64_t by) {
  Builder& b = *x.builder;
  if ((by & (by - 1)) == 0) {
    int64_t bits = 0;
    while ((int64_t{1} << bits) < by) ++bits;
    return bits == 0 ? x : binary(Op::shift_sign, x, b.integer(Type::i64, bits));
  }
  const int64_t limit = int64_t{1} << 52;
  Val quotient = convert(floor(convert(x, Type::f64) / b.constant(Type::f64, static_cast<double>(by))), Type::i64);
  Val rare = (x > b.integer(Type::i64, limit)) | (x < b.integer(Type::i64, -limit));
  // What the loop divides it carries: else the division would stand in front of it.
  return b.loop_while(0, 1, {{rare}, {quotient}, {x}}, [&](Val, const Vals& s) -> Vals {
    Val q = s[2] / y, r = binary(Op::rem, s[2], y);
    return {b.integer(Type::b1, 0), select((r != 0) & (s[2] < 0), q - 1, q), s[2]};
  })[1];
}

}  // namespace

Val remainder(Val x, Val y) {
  if (int64_t by = known_divisor(x, y)) return x - floor_div_by(x, y, by) * y;
  Val r = fmod(x, y), zero = x.builder->constant(x.type(), 0);
  return select((r != zero) & ((r < zero) ^ (y < zero)), r + y, r);
}

Val floor_div(Val x, Val y) {
  Val zero = x.builder->constant(x.type(), 0);
  if (is_int(x.type())) {
    if (int64_t by = known_divisor(x, y)) return floor_div_by(x, y, by);
    Val q = x / y, r = binary(Op::rem, x, y);
    return select((r != zero) & ((x < zero) ^ (y < zero)), q - 1, q);
  }
  Val rest = fmod(x, y);
  Val q = (x - rest) / y;
  q = select((rest != zero) & ((y < zero) ^ (rest < zero)), q - 1.0, q);
  Val floored = floor(q);
  Val result = select(q - floored > 0.5, floored + 1.0, floored);
  result = select(q == 0.0, copysign(zero, x / y), result);
  return select(y == 0.0, x / y, result);
}

Val random_bits(Val seed, Val stream, Val position) {
  Builder& b = *position.builder;
  Val low = b.integer(Type::i64, 0xffffffff);
  auto word = [&](uint32_t number) { return b.integer(Type::i64, number); };
  Val c0 = (position >> 2) & low, c1 = position >> 34, c2 = stream & low, c3 = stream >> 32;
  Val k0 = seed & low, k1 = seed >> 32;
  for (int round = 0; round < 10; ++round) {
    Val p0 = b.emit(Op::mul_low32, Type::i64, {c0, word(0xD2511F53)});
    Val p1 = b.emit(Op::mul_low32, Type::i64, {c2, word(0xCD9E8D57)});
    Val n0 = (p1 >> 32) ^ c1 ^ k0, n2 = (p0 >> 32) ^ c3 ^ k1;
    c0 = n0, c1 = p1, c2 = n2, c3 = p0;  // whose upper halves mean nothing: products take the lower ones
    k0 = (k0 + word(0x9E3779B9)) & low;
    k1 = (k1 + word(0xBB67AE85)) & low;
  }
  Val which = position & 3;
  return select((which & 2) == 0, select((which & 1) == 0, c0, c1), select((which & 1) == 0, c2, c3)) & low;
}

Val round_to(Val x, Element element) { return x.builder->emit(Op::round_to, Type::f32, {x}, 0, element); }

}  // namespace tenon::compile

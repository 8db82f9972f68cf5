// a * b + c rounded once, where the target has no instruction for it.
#include <stdint.h>

namespace {

__extension__ typedef unsigned __int128 Wide;

uint64_t bits_of(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, 8);
  return bits;
}
double number_of(uint64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, 8);
  return x;
}
bool finite(double x) { return x - x == 0; }

/// |x| = mantissa * 2^exponent with a mantissa of 53 bits; x is finite and not 0.
struct Parts {
  uint64_t mantissa;
  int exponent;
};
Parts split(double x) {
  uint64_t bits = bits_of(x), mantissa = bits & 0xfffffffffffffull;
  int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  if (exponent) return {mantissa | 1ull << 52, exponent - 1075};
  int shift = __builtin_clzll(mantissa) - 11;
  return {mantissa << shift, -1074 - shift};
}

/// What falls off leaves its trace in the last bit.
Wide shift_right(Wide x, int amount) {
  if (amount == 0) return x;
  if (amount > 127) return x != 0;
  return x >> amount | ((x & ((Wide{1} << amount) - 1)) != 0);
}

/// (-1)^negative * value * 2^exponent, to nearest even.
double rounded(bool negative, Wide value, int exponent) {
  uint64_t high = static_cast<uint64_t>(value >> 64), low = static_cast<uint64_t>(value);
  int top = high ? 127 - __builtin_clzll(high) : 63 - __builtin_clzll(low);
  int drop = top - 52 > -1074 - exponent ? top - 52 : -1074 - exponent;
  uint64_t mantissa = 0;
  if (drop <= 0) {
    mantissa = static_cast<uint64_t>(value << -drop);
  } else if (drop <= 127) {
    Wide rest = value & ((Wide{1} << drop) - 1), half = Wide{1} << (drop - 1);
    mantissa = static_cast<uint64_t>(value >> drop);
    if (rest > half || (rest == half && (mantissa & 1))) ++mantissa;
  }
  uint64_t sign = static_cast<uint64_t>(negative) << 63;
  if (mantissa < 1ull << 52) return number_of(sign | mantissa);
  int biased = exponent + drop + 1075;
  if (biased + (mantissa >> 53 ? 1 : 0) >= 2047) return number_of(sign | 0x7ffull << 52);
  return number_of(sign | ((static_cast<uint64_t>(biased) << 52) + (mantissa - (1ull << 52))));
}

}  // namespace

extern "C" double fma(double a, double b, double c) {
  if (!finite(a) || !finite(b) || a == 0 || b == 0) return a * b + c;
  if (!finite(c)) return c + c;
  if (c == 0) return a * b;
  Parts pa = split(a), pb = split(b), pc = split(c);
  bool negative = (bits_of(a) ^ bits_of(b)) >> 63, negative_c = bits_of(c) >> 63;
  // Both sides with their first bit near 2^125, so that what shifting loses is far below what is kept.
  Wide product = static_cast<Wide>(pa.mantissa) * pb.mantissa << 20, addend = static_cast<Wide>(pc.mantissa) << 72;
  int exponent = pa.exponent + pb.exponent - 20, exponent_c = pc.exponent - 72;
  if (exponent < exponent_c) {
    product = shift_right(product, exponent_c - exponent);
    exponent = exponent_c;
  } else {
    addend = shift_right(addend, exponent - exponent_c);
  }
  if (negative == negative_c) return rounded(negative, product + addend, exponent);
  if (product == addend) return 0;
  if (product > addend) return rounded(negative, product - addend, exponent);
  return rounded(negative_c, addend - product, exponent);
}

extern "C" float fmaf(float a, float b, float c) {
  double product = static_cast<double>(a) * b, sum = product + c;  // the product is exact
  if (!finite(sum)) return static_cast<float>(sum);
  double kept = sum - c, error = (product - kept) + (c - (sum - kept));
  if (error != 0 && !(bits_of(sum) & 1))  // to odd: then rounding again rounds right
    sum = number_of(bits_of(sum) + ((error > 0) == (sum > 0) ? 1 : -1));
  return static_cast<float>(sum);
}

// Numbers of every real dtype, loaded to and stored from f64 and i64, and the arithmetic that needs no library.
#pragma once
#include "kernels/kernel.h"
#include "kernels/math.h"

namespace tenon::kernels {

inline double from_bits(uint64_t bits) { return __builtin_bit_cast(double, bits); }
inline int64_t bits_of(double x) { return __builtin_bit_cast(int64_t, x); }
inline int64_t bits_of(int64_t x) { return x; }

inline bool is_nan(double x) { return x != x; }
inline bool is_infinite(double x) { return abs(x) == __builtin_inf(); }
inline bool is_finite(double x) { return abs(x) < __builtin_inf(); }

/// x 2^n
inline double scaled(double x, int64_t n) {
  auto power = [](int64_t e) { return from_bits(static_cast<uint64_t>(e + 1023) << 52); };
  if (n > 3000) n = 3000;
  if (n < -3000) n = -3000;
  for (; n > 1000; n -= 1000) x *= power(1000);
  for (; n < -1000; n += 1000) x *= power(-1000);
  return x * power(n);
}

/// m and e of x = m 2^e, 1/2 <= |m| < 1; x itself and 0 where there is no such.
inline double split(double x, int64_t& exponent) {
  exponent = 0;
  if (x == 0 || !is_finite(x)) return x;
  auto bits = static_cast<uint64_t>(bits_of(x));
  if (!(bits & 0x7ff0000000000000u)) {
    exponent = -64;
    bits = static_cast<uint64_t>(bits_of(x * 0x1p64));
  }
  exponent += static_cast<int64_t>(bits >> 52 & 0x7ff) - 1022;
  return from_bits((bits & 0x800fffffffffffffu) | 0x3fe0000000000000u);
}

inline bool is_floating(int32_t dtype) { return dtype >= TENON_F16 && dtype <= TENON_F64; }
inline bool is_real(int32_t dtype) { return dtype >= TENON_BOOL && dtype <= TENON_F64; }
inline int64_t size_of(int32_t dtype) {
  switch (dtype) {
    case TENON_BOOL:
    case TENON_U8:
    case TENON_I8:
    case TENON_F8_E4M3FN:
    case TENON_F8_E5M2:
    case TENON_F8_E4M3FNUZ:
    case TENON_F8_E5M2FNUZ:
    case TENON_F8_E8M0FNU: return 1;
    case TENON_I16:
    case TENON_U16:
    case TENON_F16:
    case TENON_BF16: return 2;
    case TENON_I32:
    case TENON_U32:
    case TENON_F32:
    case TENON_C32: return 4;
    case TENON_I64:
    case TENON_U64:
    case TENON_F64:
    case TENON_C64: return 8;
    case TENON_C128: return 16;
    default: return 0;
  }
}

/// Towards zero; NaN is 0, what leaves 64 bits stays at their end.
inline int64_t saturated(double x) {
  if (x != x) return 0;
  if (x >= 0x1p63) return INT64_MAX;
  if (x < -0x1p63) return INT64_MIN;
  return static_cast<int64_t>(x);
}

template <class T>
T converted(double x) {
  if constexpr (__is_same(T, double)) return x;
  else return saturated(x);
}

// Once in a family, not in every loop: artifacts carry it.
template <class T>
[[gnu::noinline]] T load(const void* data, int32_t dtype, int64_t i) {
  switch (dtype) {
    case TENON_BOOL: return static_cast<T>(static_cast<const uint8_t*>(data)[i] != 0);
    case TENON_U8: return static_cast<T>(static_cast<const uint8_t*>(data)[i]);
    case TENON_I8: return static_cast<T>(static_cast<const int8_t*>(data)[i]);
    case TENON_I16: return static_cast<T>(static_cast<const int16_t*>(data)[i]);
    case TENON_I32: return static_cast<T>(static_cast<const int32_t*>(data)[i]);
    case TENON_I64: return static_cast<T>(static_cast<const int64_t*>(data)[i]);
    case TENON_U16: return static_cast<T>(static_cast<const uint16_t*>(data)[i]);
    case TENON_U32: return static_cast<T>(static_cast<const uint32_t*>(data)[i]);
    case TENON_U64: return static_cast<T>(static_cast<const uint64_t*>(data)[i]);
    case TENON_F16:
      return converted<T>(static_cast<double>(math::half_to_float(static_cast<const uint16_t*>(data)[i])));
    case TENON_BF16:
      return converted<T>(static_cast<double>(math::bfloat_to_float(static_cast<const uint16_t*>(data)[i])));
    case TENON_F32: return converted<T>(static_cast<double>(static_cast<const float*>(data)[i]));
    case TENON_F64: return converted<T>(static_cast<const double*>(data)[i]);
    default: return T(0);
  }
}

template <class T>
int64_t whole(T x) {
  if constexpr (__is_same(T, double)) return saturated(x);
  else return x;
}
template <class T>
[[gnu::noinline]] void store(void* data, int32_t dtype, int64_t i, T x) {
  switch (dtype) {
    case TENON_BOOL: static_cast<uint8_t*>(data)[i] = x != T(0); break;
    case TENON_U8: static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(whole(x)); break;
    case TENON_I8: static_cast<int8_t*>(data)[i] = static_cast<int8_t>(whole(x)); break;
    case TENON_I16: static_cast<int16_t*>(data)[i] = static_cast<int16_t>(whole(x)); break;
    case TENON_I32: static_cast<int32_t*>(data)[i] = static_cast<int32_t>(whole(x)); break;
    case TENON_I64: static_cast<int64_t*>(data)[i] = whole(x); break;
    case TENON_U16: static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(whole(x)); break;
    case TENON_U32: static_cast<uint32_t*>(data)[i] = static_cast<uint32_t>(whole(x)); break;
    case TENON_U64: static_cast<uint64_t*>(data)[i] = static_cast<uint64_t>(whole(x)); break;
    case TENON_F16: static_cast<uint16_t*>(data)[i] = math::float_to_half(static_cast<float>(x)); break;
    case TENON_BF16: static_cast<uint16_t*>(data)[i] = math::float_to_bfloat(static_cast<float>(x)); break;
    case TENON_F32: static_cast<float*>(data)[i] = static_cast<float>(x); break;
    case TENON_F64: static_cast<double*>(data)[i] = static_cast<double>(x); break;
    default: break;
  }
}

}  // namespace tenon::kernels

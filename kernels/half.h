// Numbers of half precision in memory: weights are kept in it and computed with in float.
#pragma once
#include "kernels/math.h"
#include "kernels/vector.h"

namespace tenon::kernels {

struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

/// Rounded to the nearest, of two to the even one.
template <class To, class From>
TENON_INLINE To convert(From x) {
  return x;
}
template <>
TENON_INLINE BFloat convert<BFloat, float>(float x) {
  return {static_cast<uint16_t>(math::float_to_bfloat(x))};
}
template <>
TENON_INLINE Half convert<Half, float>(float x) {
  return {static_cast<uint16_t>(math::float_to_half(x))};
}

/// Where a column of a panel lies. Those of bfloat16 lie so that one shuffle within 128 bits widens a vector of them: 0
/// to 3, 8 to 11, 4 to 7, 12 to 15.
template <class W>
constexpr int slot_of(int column) {
  return __is_same(W, BFloat) ? (column & 3) + (column & 4) * 2 + (column & 8) / 2 : column;
}

/// Of 16 columns, those that vector number `part` of T holds.
template <class T, class W>
TENON_INLINE Vector<T> load_columns(const void* panel, int part) {
  const W* const columns = static_cast<const W*>(panel);
  if constexpr (sizeof(T) == sizeof(W)) {
    return load<T>(columns + part * lanes<T>);
  } else if constexpr (__is_same(W, Half)) {
    typedef uint16_t Bits __attribute__((vector_size(vector_bytes / 2), aligned(2), may_alias));
    const auto& bits = *reinterpret_cast<const Bits*>(columns + part * lanes<T>);
    Vector<float> out;
#if defined(__AVX512F__) || defined(__AVX2__)
    asm("vcvtph2ps %1, %0" : "=v"(out) : "m"(bits));
#else
    for (int i = 0; i < lanes<float>; ++i) out[i] = math::half_to_float(bits[i]);
#endif
    return out;
  } else {
#if defined(__AVX512F__) || defined(__AVX2__)
    typedef uint16_t Bits __attribute__((vector_size(32), aligned(2), may_alias));
    typedef char Bytes __attribute__((vector_size(vector_bytes)));
    Bytes from;  // for each byte of the result, which one of its 128 bits it is; -1: zero
    for (int i = 0; i < vector_bytes; ++i)
      from[i] = static_cast<char>(i % 4 < 2 ? -1 : i % 16 / 4 * 2 + i % 2 + (vector_bytes == 64 ? i / 32 : part) * 8);
    const Bits& bits = *reinterpret_cast<const Bits*>(columns);
    Vector<float> out;
#if defined(__AVX512F__)
    asm("vbroadcasti64x4 %1, %0\n\tvpshufb %2, %0, %0" : "=&v"(out) : "m"(bits), "v"(from));
#else
    asm("vmovdqu %1, %0\n\tvpshufb %2, %0, %0" : "=&x"(out) : "m"(bits), "xm"(from));
#endif
    return out;
#else
    typedef uint16_t Bits __attribute__((vector_size(vector_bytes / 2), aligned(2), may_alias));
    typedef uint32_t Wide __attribute__((vector_size(vector_bytes)));
    const auto& bits = *reinterpret_cast<const Bits*>(columns + slot_of<W>(part * lanes<T>));
    return reinterpret_cast<Vector<float> >(__builtin_convertvector(bits, Wide) << 16);
#endif
  }
}

}  // namespace tenon::kernels

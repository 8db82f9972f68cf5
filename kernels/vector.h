// Vectors as wide as the target's registers, by the compiler's vector extensions. Fused multiplication and addition
// happens where `fma` is written and nowhere else.
#pragma once
#include <stdint.h>

namespace tenon::kernels {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64, vector_registers = 32;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32, vector_registers = 16;
#else
constexpr int vector_bytes = 16, vector_registers = 16;
#endif

#define TENON_INLINE inline __attribute__((always_inline))

template <class T>
struct VectorTypes;
#define TENON_VECTOR_TYPES(T)                                                           \
  template <>                                                                           \
  struct VectorTypes<T> {                                                               \
    typedef T Aligned __attribute__((vector_size(vector_bytes)));                       \
    typedef T Single __attribute__((vector_size(vector_bytes), aligned(4), may_alias)); \
  };
TENON_VECTOR_TYPES(float)
TENON_VECTOR_TYPES(double)
TENON_VECTOR_TYPES(int64_t)
#undef TENON_VECTOR_TYPES

template <class T>
using Vector = typename VectorTypes<T>::Aligned;
template <class T>
constexpr int lanes = vector_bytes / static_cast<int>(sizeof(T));

template <class T>
TENON_INLINE Vector<T> load(const void* from) {
  return *static_cast<const typename VectorTypes<T>::Single*>(from);
}
template <class T>
TENON_INLINE void store(T* to, Vector<T> value) {
  *reinterpret_cast<typename VectorTypes<T>::Single*>(to) = value;
}
template <class T>
TENON_INLINE Vector<T> broadcast(T value) {
  return value - Vector<T>{};
}

/// The first `n` lanes: the others are zero when loaded and stay as they are in memory, which is not touched there.
template <class T>
TENON_INLINE Vector<T> load_first(const T* from, int64_t n) {
  Vector<T> out{};
  for (int64_t i = 0; i < n; ++i) out[i] = from[i];
  return out;
}
template <class T>
TENON_INLINE void store_first(T* to, Vector<T> value, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = value[i];
}
#if defined(__AVX512F__)
TENON_INLINE Vector<float> load_first(const float* from, int64_t n) {
  Vector<float> out;
  const auto mask = static_cast<unsigned short>((1u << n) - 1);
  asm("vmovups %1, %0%{%2%}%{z%}" : "=v"(out) : "m"(*from), "Yk"(mask) : "memory");
  return out;
}
TENON_INLINE void store_first(float* to, Vector<float> value, int64_t n) {
  const auto mask = static_cast<unsigned short>((1u << n) - 1);
  asm volatile("vmovups %1, %0%{%2%}" : "+m"(*to) : "v"(value), "Yk"(mask) : "memory");
}
#endif

/// One element in every lane. From memory: a load unit does it.
TENON_INLINE Vector<float> broadcast_from(const float* from) {
#if defined(__AVX512F__) || defined(__AVX2__)
  Vector<float> out;
  asm("vbroadcastss %1, %0" : "=v"(out) : "m"(*from));
  return out;
#else
  return broadcast(*from);
#endif
}
TENON_INLINE Vector<double> broadcast_from(const double* from) {
#if defined(__AVX512F__) || defined(__AVX2__)
  Vector<double> out;
  asm("vbroadcastsd %1, %0" : "=v"(out) : "m"(*from));
  return out;
#else
  return broadcast(*from);
#endif
}
TENON_INLINE Vector<int64_t> broadcast_from(const int64_t* from) { return broadcast(*from); }

/// Keeps a value in a register: compilers would load it again for every use, and a load a cycle is all there is.
template <class V>
TENON_INLINE void keep(V& value) {
#if defined(__AVX512F__) || defined(__AVX2__)
  asm("" : "+v"(value));
#else
  (void)value;
#endif
}

/// a * b + c, rounded once. Written as an instruction: compilers would fold a load of b into every use of it.
TENON_INLINE Vector<float> fma(Vector<float> a, Vector<float> b, Vector<float> c) {
#if defined(__AVX512F__) || defined(__AVX2__)
  asm("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
#else
  for (int i = 0; i < lanes<float>; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
#endif
  return c;
}
TENON_INLINE Vector<double> fma(Vector<double> a, Vector<double> b, Vector<double> c) {
#if defined(__AVX512F__) || defined(__AVX2__)
  asm("vfmadd231pd %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
#else
  for (int i = 0; i < lanes<double>; ++i) c[i] = __builtin_fma(a[i], b[i], c[i]);
#endif
  return c;
}
TENON_INLINE Vector<int64_t> fma(Vector<int64_t> a, Vector<int64_t> b, Vector<int64_t> c) { return c + a * b; }

TENON_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TENON_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
TENON_INLINE int64_t fma(int64_t a, int64_t b, int64_t c) { return c + a * b; }

/// The second where the first is not greater, or either is NaN.
template <class V>
TENON_INLINE V greater(V a, V b) {
  return a > b ? a : b;
}
#if defined(__AVX512F__) || defined(__AVX2__)
TENON_INLINE Vector<float> greater(Vector<float> a, Vector<float> b) {
  Vector<float> out;
  asm("vmaxps %2, %1, %0" : "=v"(out) : "v"(a), "v"(b));
  return out;
}
#endif

/// NaN stays NaN, and -0 what it is.
template <class V>
TENON_INLINE V relu(V x) {
  return x < 0 ? V{} : x;
}
#if defined(__AVX512F__) || defined(__AVX2__)
TENON_INLINE Vector<float> relu(Vector<float> x) { return greater(Vector<float>{}, x); }
#endif

}  // namespace tenon::kernels

// No #pragma once: kernels.cpp includes this once for each instruction set, inside a namespace of its own, with
//   TENON_TARGET  the function attribute,   TENON_BYTES  the vector's width,   TENON_ROWS  the register tile's height,
//   TENON_FMA_F32(a, b, c), TENON_FMA_F64(a, b, c)  the fused multiply-add of a whole vector.
// A template cannot choose its target attribute, and GCC lowers vector code before it inlines: hence text, not types.

#define TENON_INLINE TENON_TARGET __attribute__((always_inline)) inline

typedef float F32 __attribute__((vector_size(TENON_BYTES)));
typedef int I32 __attribute__((vector_size(TENON_BYTES)));
typedef double F64 __attribute__((vector_size(TENON_BYTES)));

template <class T>
struct Pick;
template <>
struct Pick<float> {
  typedef F32 Vector;
  typedef float Loose __attribute__((vector_size(TENON_BYTES), aligned(4), may_alias));
};
template <>
struct Pick<double> {
  typedef F64 Vector;
  typedef double Loose __attribute__((vector_size(TENON_BYTES), aligned(8), may_alias));
};
template <class T>
using Vector = typename Pick<T>::Vector;
template <class T>
constexpr int lanes = TENON_BYTES / static_cast<int>(sizeof(T));

template <class T>
TENON_INLINE Vector<T> load(const T* p) {
  return *reinterpret_cast<const typename Pick<T>::Loose*>(p);
}
template <class T>
TENON_INLINE void store(T* p, Vector<T> v) {
  *reinterpret_cast<typename Pick<T>::Loose*>(p) = v;
}
TENON_INLINE F32 fused(F32 a, F32 b, F32 c) { return TENON_FMA_F32(a, b, c); }
TENON_INLINE F64 fused(F64 a, F64 b, F64 c) { return TENON_FMA_F64(a, b, c); }

template <class T, int Height, int Width>
TENON_TARGET void tile(std::int64_t k, const T* a, const T* b, std::int64_t b_row, T* out, std::int64_t out_row,
                       int rows, bool add) {
  Vector<T> sum[Height][Width];
#pragma GCC unroll 16
  for (int i = 0; i < Height; ++i)
#pragma GCC unroll 8
    for (int j = 0; j < Width; ++j) sum[i][j] = Vector<T>{};
  for (; k > 0; --k) {
    Vector<T> right[Width];
#pragma GCC unroll 8
    for (int j = 0; j < Width; ++j) right[j] = load(b + j * lanes<T>);
#pragma GCC unroll 16
    for (int i = 0; i < Height; ++i) {
      Vector<T> left = a[i] - Vector<T>{};
#pragma GCC unroll 8
      for (int j = 0; j < Width; ++j) sum[i][j] = fused(left, right[j], sum[i][j]);
    }
    a += Height;
    b += b_row;
  }
#pragma GCC unroll 16
  for (int i = 0; i < Height; ++i) {
    if (i >= rows) break;
#pragma GCC unroll 8
    for (int j = 0; j < Width; ++j) {
      T* at = out + i * out_row + j * lanes<T>;
      store(at, add ? load(at) + sum[i][j] : sum[i][j]);
    }
  }
}

template <class T>
TENON_TARGET T dot(std::int64_t n, const T* x, const T* y) {
  constexpr int width = lanes<T>;
  Vector<T> sum[4] = {};
  std::int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width)
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) sum[j] = fused(load(x + i + j * width), load(y + i + j * width), sum[j]);
  for (; i + width <= n; i += width) sum[0] = fused(load(x + i), load(y + i), sum[0]);
  Vector<T> all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  T lane[width];
  store(lane, all);
  for (int step = width / 2; step > 0; step /= 2)
    for (int j = 0; j < step; ++j) lane[j] += lane[j + step];
  for (; i < n; ++i) lane[0] += x[i] * y[i];
  return lane[0];
}

template <class T>
TENON_TARGET void add_scaled(std::int64_t n, T factor, const T* x, T* y) {
  Vector<T> left = factor - Vector<T>{};
  std::int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) store(y + i, fused(left, load(x + i), load(y + i)));
  if (i == n) return;
  // The rest goes through the same instruction, so that an element's bits do not depend on its place.
  T xs[lanes<T>] = {}, ys[lanes<T>] = {};
  for (std::int64_t j = i; j < n; ++j) xs[j - i] = x[j], ys[j - i] = y[j];
  store(ys, fused(left, load(xs), load(ys)));
  for (std::int64_t j = i; j < n; ++j) y[j] = ys[j - i];
}

template <class T>
TENON_TARGET T scale_max(std::int64_t n, T factor, T* x) {
  constexpr int width = lanes<T>;
  const T least = -static_cast<T>(__builtin_inff());
  Vector<T> most = least - Vector<T>{};
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    Vector<T> v = load(x + i) * factor;
    store(x + i, v);
    most = v > most ? v : most;
  }
  T result = least;
  for (int j = 0; j < width; ++j) result = most[j] > result ? most[j] : result;
  for (; i < n; ++i) {
    x[i] *= factor;
    result = x[i] > result ? x[i] : result;
  }
  return result;
}

/// exp within 1 ulp or so: x = n ln2 + r, |r| <= ln2 / 2, Taylor's series to r^7 (its rest is below 6e-9), and 2^n in
/// two factors so that the ends of the range come out right. The clamps leave NaN alone.
TENON_INLINE F32 exponential(F32 x) {
  const F32 one = 1.0f - F32{};
  x = x < -105.0f ? -105.0f * one : x;
  x = x > 89.0f ? 89.0f * one : x;
  const float shift = 12582912.0f;  // 1.5 * 2^23: its last bit is worth one, so adding it rounds to an integer
  F32 shifted = fused(x, 1.44269504f * one, shift * one);
  F32 n = shifted - shift;
  F32 r = fused(n, -0.693145751953125f * one, x);
  r = fused(n, -1.42860677e-6f * one, r);
  F32 p = fused(r, (1.0f / 5040) * one, (1.0f / 720) * one);
  p = fused(p, r, (1.0f / 120) * one);
  p = fused(p, r, (1.0f / 24) * one);
  p = fused(p, r, (1.0f / 6) * one);
  p = fused(p, r, 0.5f * one);
  p = fused(p, r * r, r) + 1.0f;
  I32 power = reinterpret_cast<I32>(shifted) - 0x4B400000;
  I32 half = power >> 1;
  return p * reinterpret_cast<F32>((half + 127) << 23) * reinterpret_cast<F32>((power - half + 127) << 23);
}

TENON_INLINE F64 exponential(F64 x) {
  for (int i = 0; i < lanes<double>; ++i) x[i] = __builtin_exp(x[i]);
  return x;
}

template <class T>
TENON_TARGET T exp_row(std::int64_t n, T* x, T shift) {
  constexpr int width = lanes<T>;
  Vector<T> sum = {};
  std::int64_t i = 0;
  for (; i + width <= n; i += width) {
    Vector<T> e = exponential(load(x + i) - shift);
    store(x + i, e);
    sum += e;
  }
  T lane[width];
  if (i < n) {
    for (int j = 0; j < width; ++j) lane[j] = j < n - i ? x[i + j] : -__builtin_inff();
    Vector<T> e = exponential(load(lane) - shift);
    store(lane, e);
    for (std::int64_t j = i; j < n; ++j) x[j] = lane[j - i];
    for (int j = 0; j < width; ++j)
      if (j >= n - i) e[j] = 0;
    sum += e;
  }
  store(lane, sum);
  for (int step = width / 2; step > 0; step /= 2)
    for (int j = 0; j < step; ++j) lane[j] += lane[j + step];
  return lane[0];
}

template <class T>
Kernels<T> table() {
  Kernels<T> t;
  t.rows = TENON_ROWS;
  t.columns = 2 * lanes<T>;
  t.depth = 256;
  t.tile[1] = tile<T, 1, 2>, t.narrow[1] = tile<T, 1, 1>;
  t.tile[2] = tile<T, 2, 2>, t.narrow[2] = tile<T, 2, 1>;
  t.tile[4] = tile<T, 4, 2>, t.narrow[4] = tile<T, 4, 1>;
#if TENON_ROWS >= 6
  t.tile[6] = tile<T, 6, 2>, t.narrow[6] = tile<T, 6, 1>;
#endif
#if TENON_ROWS >= 12
  t.tile[8] = tile<T, 8, 2>, t.narrow[8] = tile<T, 8, 1>;
  t.tile[10] = tile<T, 10, 2>, t.narrow[10] = tile<T, 10, 1>;
  t.tile[12] = tile<T, 12, 2>, t.narrow[12] = tile<T, 12, 1>;
#endif
  t.row = tile<T, 1, 8>;
  t.dot = dot<T>;
  t.add_scaled = add_scaled<T>;
  t.scale_max = scale_max<T>;
  t.exp_row = exp_row<T>;
  return t;
}

#undef TENON_INLINE

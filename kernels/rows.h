// Rows of scores. Sums run in 16 interleaved parts that meet in pairs, whatever the width of the target's vectors.
#pragma once
#include "kernels/math.h"
#include "kernels/vector.h"

namespace tenon::kernels {

constexpr int parts = 16;

template <int... i>
struct integers {};
template <int n, int... i>
constexpr auto first_integers() {
  if constexpr (n == 0) return integers<i...>();
  else return first_integers<n - 1, n - 1, i...>();
}

/// Part j meets part j + 8, then j + 4, 2 and 1.
template <class T>
TENON_INLINE T sum_of_parts(const T* part) {
  typedef T Eight __attribute__((vector_size(8 * sizeof(T))));
  typedef T Free __attribute__((vector_size(8 * sizeof(T)), aligned(alignof(T)), may_alias));
  const Eight low = *reinterpret_cast<const Free*>(part), high = *reinterpret_cast<const Free*>(part + 8);
  const Eight eight = low + high;
  const auto four =
      __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  const auto two = __builtin_shufflevector(four, four, 0, 1) + __builtin_shufflevector(four, four, 2, 3);
  return two[0] + two[1];
}

/// The sum of x[i] * y[i].
template <class T>
T dot(int64_t n, const T* x, int64_t x_step, const T* y, int64_t y_step) {
  constexpr int vectors = parts / lanes<T>;
  T part[parts];
  int64_t i = 0;
  if (x_step == 1 && y_step == 1) {
    Vector<T> sum[vectors] = {};
    for (; i + parts <= n; i += parts)
      for (int j = 0; j < vectors; ++j)
        sum[j] = fma(load<T>(x + i + j * lanes<T>), load<T>(y + i + j * lanes<T>), sum[j]);
    for (int j = 0; j < vectors; ++j) store(part + j * lanes<T>, sum[j]);
  } else {
    for (T& p : part) p = 0;
  }
  for (; i < n; ++i) part[i % parts] = fma(x[i * x_step], y[i * y_step], part[i % parts]);
  return sum_of_parts(part);
}

/// Halves against each other until one lane is left.
template <class V>
TENON_INLINE auto greatest_lane(V v) {
  constexpr int n = sizeof(V) / sizeof(v[0]);
  if constexpr (n == 2) return v[1] > v[0] ? v[1] : v[0];
  else {
    auto half = [&]<int... i>(integers<i...>) __attribute__((always_inline)) {
      const auto low = __builtin_shufflevector(v, v, i...), high = __builtin_shufflevector(v, v, (i + n / 2)...);
      return high > low ? high : low;
    };
    return greatest_lane(half(first_integers<n / 2>()));
  }
}

/// The greatest, not looking at NaN; -infinity if there is none.
template <class T>
T greatest_of(int64_t n, const T* x) {
  const T none = -static_cast<T>(__builtin_inff());
  Vector<T> most = broadcast(none);
  int64_t i = 0;
  for (; i + lanes<T> <= n; i += lanes<T>) { most = greater(load<T>(x + i), most); }
  T result = greatest_lane(most);
  for (; i < n; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

/// x[i] = exp(x[i] - shift).
template <class T>
void exp_row(int64_t n, T* x, T shift) {
  for (int64_t i = 0; i < n; ++i) x[i] = exp(x[i] - shift);
}

template <class T>
T sum_row(int64_t n, const T* x) {
  constexpr int vectors = parts / lanes<T>;
  Vector<T> sum[vectors] = {};
  T part[parts];
  int64_t i = 0;
  for (; i + parts <= n; i += parts)
    for (int j = 0; j < vectors; ++j) sum[j] += load<T>(x + i + j * lanes<T>);
  for (int j = 0; j < vectors; ++j) store(part + j * lanes<T>, sum[j]);
  for (; i < n; ++i) part[i % parts] += x[i];
  return sum_of_parts(part);
}

/// e^x for x <= 0 or NaN: the bits of `exp`, but 0 below e^-87.
TENON_INLINE Vector<float> exp_of_negative(Vector<float> x) {
  typedef uint32_t Bits __attribute__((vector_size(vector_bytes)));
  const Vector<float> shift = broadcast(0x1.8p+23f);  // rounds to a whole number n, which the lowest bits then are
  const Vector<float> shifted = x * 0x1.715476p+0f + shift, n = shifted - shift;
  const Vector<float> r = fma(n, broadcast(-0x1.7f7d1cp-20f), fma(n, broadcast(-0x1.62e4p-1f), x));
  Vector<float> p = fma(broadcast(0x1.6d117cp-10f), r, broadcast(0x1.120be2p-7f));
  p = fma(p, r, broadcast(0x1.555518p-5f));
  p = fma(p, r, broadcast(0x1.5554dcp-3f));
  p = fma(p, r, broadcast(0.5f));
  const Vector<float> y = 1.0f + fma(p, r * r, r);
  const Bits power = (reinterpret_cast<Bits>(shifted) << 23) + 0x3f800000u;
  return x < -87.0f ? Vector<float>{} : y * reinterpret_cast<Vector<float>>(power);
}

/// x[i] = exp(x[i] - greatest), of which none is greater; returns the sum.
inline double weigh_row(int64_t n, double* x, double greatest) {
  exp_row(n, x, greatest);
  return sum_row(n, x);
}
inline float weigh_row(int64_t n, float* x, float greatest) {
  constexpr int vectors = parts / lanes<float>;
  const Vector<float> shift = broadcast(greatest);
  Vector<float> sum[vectors] = {};
  float part[parts];
  int64_t i = 0;
  for (; i + parts <= n; i += parts)
#pragma GCC unroll 4
    for (int j = 0; j < vectors; ++j) {
      const Vector<float> weights = exp_of_negative(load<float>(x + i + j * lanes<float>) - shift);
      store(x + i + j * lanes<float>, weights);
      sum[j] += weights;
    }
  for (int j = 0; j < vectors; ++j) store(part + j * lanes<float>, sum[j]);
  for (; i < n; i += lanes<float>) {
    const int64_t rest = n - i < lanes<float> ? n - i : lanes<float>;
    const Vector<float> weights = exp_of_negative(load_first(x + i, rest) - shift);
    store_first(x + i, weights, rest);
    for (int64_t k = 0; k < rest; ++k) part[(i + k) % parts] += x[i + k];
  }
  return sum_of_parts(part);
}

}  // namespace tenon::kernels

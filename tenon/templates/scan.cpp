#include "tenon/templates/scan.h"

#include "tenon/templates/parallel.h"

namespace tenon::templates {
namespace {

using Int = std::int64_t;

template <class T>
struct Running {
  using type = double;
};
template <>
struct Running<Int> {
  using type = std::uint64_t;  // wraps around without being undefined
};

/// Some neighbouring lines at a time, element by element, so that lines across the memory's order read whole rows.
/// step(state, value, index, where) advances one line's state and writes its result.
template <class T, class State, class Step>
void scan(const T* from, const Lines& lines, const Lines& to, State start, Step step) {
  constexpr Int together = 32;
  const Int groups = (lines.inner + together - 1) / together;
  const Int grain = 8192 / (lines.length * together + 1) + 1;
  parallel_for(lines.outer * groups, grain, [&](Int lo, Int hi) {
    for (Int task = lo; task < hi; ++task) {
      const Int o = task / groups, first = task % groups * together;
      const Int count = lines.inner - first < together ? lines.inner - first : together;
      State state[together];
      for (Int i = 0; i < count; ++i) state[i] = start;
      for (Int p = 0; p < lines.length; ++p) {
        const T* read = from + o * lines.outer_stride + first * lines.inner_stride + p * lines.stride;
        const Int write = o * to.outer_stride + first * to.inner_stride + p * to.stride;
        for (Int i = 0; i < count; ++i) step(state[i], read[i * lines.inner_stride], p, write + i * to.inner_stride);
      }
    }
  });
}

double log_add_exp(double a, double b) {
  if (a != a || b != b) return a + b;
  const double least = a < b ? a : b, most = a < b ? b : a;
  if (least == most && most - most != 0) return most;  // two equal infinities
  return __builtin_log1p(__builtin_exp(least - most)) + most;
}

template <class T>
struct Extreme {
  T value;
  Int index;
};

template <class T, class Beats>
void extremes(const T* from, const Lines& lines, T* values, Int* indices, const Lines& to, Beats beats) {
  scan(from, lines, to, Extreme<T>{T(), -1}, [=](Extreme<T>& best, T value, Int index, Int where) {
    if (best.index < 0 || value != value || (best.value == best.value && beats(value, best.value)))
      best = {value, index};
    values[where] = best.value;
    indices[where] = best.index;
  });
}

}  // namespace

template <class T>
void cumsum(const T* from, const Lines& lines, T* to, const Lines& to_lines) {
  using R = typename Running<T>::type;
  scan(from, lines, to_lines, R(0), [=](R& sum, T value, Int, Int where) {
    sum += static_cast<R>(value);
    to[where] = static_cast<T>(sum);
  });
}

template <class T>
void cumprod(const T* from, const Lines& lines, T* to, const Lines& to_lines) {
  using R = typename Running<T>::type;
  scan(from, lines, to_lines, R(1), [=](R& product, T value, Int, Int where) {
    product *= static_cast<R>(value);
    to[where] = static_cast<T>(product);
  });
}

template <class T>
void logcumsumexp(const T* from, const Lines& lines, T* to, const Lines& to_lines) {
  scan(from, lines, to_lines, -__builtin_inf(), [=](double& sum, T value, Int, Int where) {
    sum = log_add_exp(sum, static_cast<double>(value));
    to[where] = static_cast<T>(sum);
  });
}

template <class T>
void cummax(const T* from, const Lines& lines, T* values, Int* indices, const Lines& to) {
  extremes(from, lines, values, indices, to, [](T value, T best) { return value >= best; });
}

template <class T>
void cummin(const T* from, const Lines& lines, T* values, Int* indices, const Lines& to) {
  extremes(from, lines, values, indices, to, [](T value, T best) { return value <= best; });
}

#define TENON_INSTANCE(T)                                                  \
  template void cumsum<T>(const T*, const Lines&, T*, const Lines&);       \
  template void cumprod<T>(const T*, const Lines&, T*, const Lines&);      \
  template void cummax<T>(const T*, const Lines&, T*, Int*, const Lines&); \
  template void cummin<T>(const T*, const Lines&, T*, Int*, const Lines&);
TENON_INSTANCE(float)
TENON_INSTANCE(double)
TENON_INSTANCE(Int)
#undef TENON_INSTANCE
template void logcumsumexp<float>(const float*, const Lines&, float*, const Lines&);
template void logcumsumexp<double>(const double*, const Lines&, double*, const Lines&);

}  // namespace tenon::templates

// How the terms of a reduction meet: one by one, in chunks of several ways, and chunks pairwise. For stage_run.cpp
// only.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/interp/wrap.h"
#include "tenon/loop/program.h"

namespace tenon::interp {

using loop::Combine;
using loop::Compute;

template <class T>
T initial(Combine combine) {
  using Limits = std::numeric_limits<T>;
  switch (combine) {
    case Combine::sum:
    case Combine::any: return T(0);
    case Combine::product:
    case Combine::all: return T(1);
    case Combine::min:
    case Combine::argmin: return Limits::has_infinity ? Limits::infinity() : Limits::max();
    case Combine::max:
    case Combine::argmax: return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  unreachable();
}

template <class T>
T combined(Combine combine, T a, T b) {
  switch (combine) {
    case Combine::sum: return wrap_add(a, b);
    case Combine::product: return wrap_mul(a, b);
    case Combine::any: return a || b;
    case Combine::all: return a && b;
    case Combine::min:
    case Combine::argmin: return a != a ? a : b != b || b < a ? b : a;
    case Combine::max:
    case Combine::argmax: return a != a ? a : b != b || b > a ? b : a;
  }
  unreachable();
}

// Whether the later term b takes the place of a, which came before.
template <class T>
bool displaces(Combine combine, T a, T b) {
  if (a != a) return false;
  if (b != b) return true;
  return combine == Combine::argmin ? b < a : b > a;
}

template <class T>
void accumulate_lanes(Combine combine, T* acc, const T* values, int64_t n) {  // one more term for each lane
  if (combine == Combine::sum)
    for (int64_t i = 0; i < n; ++i) acc[i] = combined(Combine::sum, acc[i], values[i]);
  else
    for (int64_t i = 0; i < n; ++i) acc[i] = combined(combine, acc[i], values[i]);
}

template <class T>
T reduce_chunk(Combine combine, const T* values, int64_t n) {
  constexpr int64_t ways = 32;
  T partial[ways];
  std::fill_n(partial, ways, initial<T>(combine));
  int64_t i = 0;
  if (combine == Combine::sum)
    for (; i + ways <= n; i += ways)
      for (int64_t j = 0; j < ways; ++j) partial[j] = combined(Combine::sum, partial[j], values[i + j]);
  else
    for (; i + ways <= n; i += ways)
      for (int64_t j = 0; j < ways; ++j) partial[j] = combined(combine, partial[j], values[i + j]);
  for (int64_t j = 0; i < n; ++i, ++j) partial[j] = combined(combine, partial[j], values[i]);
  for (int64_t width = ways / 2; width > 0; width /= 2)
    for (int64_t j = 0; j < width; ++j) partial[j] = combined(combine, partial[j], partial[j + width]);
  return partial[0];
}

/// Partial results of chunks, merged pairwise as they come: level k stands for 2^k chunks.
template <class T>
struct Pairwise {
  Combine combine;
  std::vector<T> levels;
  uint64_t chunks = 0;
  void add(T value) {
    uint64_t carry = chunks++;
    while (carry & 1) {
      value = combined(combine, levels.back(), value);
      levels.pop_back();
      carry >>= 1;
    }
    levels.push_back(value);
  }
  T result() {
    if (levels.empty()) return initial<T>(combine);
    T value = levels.back();
    for (size_t i = levels.size() - 1; i-- > 0;) value = combined(combine, levels[i], value);
    return value;
  }
};

template <class F>
void with_type(Compute type, F&& f) {
  switch (type) {
    case Compute::boolean: f(uint8_t{}); return;
    case Compute::i64: f(int64_t{}); return;
    case Compute::f32: f(float{}); return;
    case Compute::f64: f(double{}); return;
  }
}

inline bool gives_position(Combine c) { return c == Combine::argmin || c == Combine::argmax; }

}  // namespace tenon::interp

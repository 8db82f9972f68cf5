// Numbers out of range, where the language leaves the result open.
#pragma once
#include <cstdint>

namespace tenon {

/// The integer part of x; the nearest end of the range where it lies outside, 0 for NaN.
inline int64_t saturated(double x) {
  if (x != x) return 0;
  if (x >= 0x1p63) return INT64_MAX;
  if (x < -0x1p63) return INT64_MIN;
  return static_cast<int64_t>(x);
}

}  // namespace tenon

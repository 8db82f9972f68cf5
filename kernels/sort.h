// Parameters of the family "sort": lines of elements of f32, f64 or i64, each sorted by itself.
#pragma once
#include <stdint.h>

namespace tenon::kernels {

/// sort_T: buffers in, values (T) and indices (i64), which may not overlap; iterations are lines. Stable, in descending
/// order too; NaN is greater than all else and equal to NaN, -0 equals 0. Scratch: sort_scratch bytes.
/// Behind the struct follow `rank` sizes of the dimensions across the lines, slowest first, then as many strides of
/// each of the three.
struct SortParams {
  int64_t length, descending;
  int64_t in, in_stride, values, values_stride, indices, indices_stride;  // where each begins, and along a line
  int64_t rank;
};

constexpr int64_t sort_short_line = 48;  // up to here without scratch beyond the items themselves
/// Two lists of key and index, and a table of counts.
constexpr int64_t sort_scratch_per_element = 32, sort_scratch_fixed = 8 * 256 * 8;

}  // namespace tenon::kernels

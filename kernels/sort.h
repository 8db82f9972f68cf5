// Parameters of the family "sort": lines of elements of f32, f64 or i64, each taken by itself; iterations are lines.
// Buffers: in, values (T) and indices (i64), which may not overlap. Behind a struct follow `rank` sizes of the
// dimensions across the lines, slowest first, then as many strides for each of the three.
#pragma once
#include <stdint.h>

namespace tenon::kernels {

/// sort_T: stable, in descending order too; NaN is greater than all else and equal to NaN, -0 equals 0.
struct SortParams {
  int64_t length, descending;
  int64_t in, in_stride, values, values_stride, indices, indices_stride;  // where each begins, and along a line
  int64_t rank;
};
/// Scratch: two lists of key and index, and a table of counts.
constexpr int64_t sort_scratch_per_element = 32, sort_scratch_fixed = 8 * 256 * 8;

/// topk_T: the k greatest (or least) of each line, in order where `sorted`; k is at most length. Ties fall as they do
/// in PyTorch on a CPU.
struct TopKParams {
  int64_t length, k, largest, sorted;
  int64_t in, in_stride, values, values_stride, indices, indices_stride;
  int64_t rank;
};
constexpr int64_t topk_scratch_per_element = 16;

}  // namespace tenon::kernels

// Parameters of the family "scan": running values along lines. Float and double are accumulated in double, as PyTorch
// does on a CPU; integers wrap around.
#pragma once
#include <stdint.h>

namespace tenon::kernels {

/// scan_sum_T, scan_product_T (f32, f64, i64), scan_logsumexp_T (f32, f64): buffers in, out.
/// scan_max_T, scan_min_T (f32, f64, i64): buffers in, out, indices (i64). The greatest (least) so far and where it was
/// last seen; after a NaN all values are NaN, at the last one's index.
/// Behind the struct follow `rank` sizes of the dimensions across the lines, slowest first, then as many strides for
/// each of in, out and indices. rank is at least 1. Iterations: for each position of the dimensions but the last,
/// groups of scan_together lines along the last.
struct ScanParams {
  int64_t length;
  int64_t in, in_stride, out, out_stride, indices, indices_stride;  // where each begins, and along a line
  int64_t rank;
};
constexpr int64_t scan_together = 32;

}  // namespace tenon::kernels

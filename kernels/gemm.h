// Parameters of gemm and of packing: products of matrices of f32, f64 and i64 (which wraps around). Every element is
// summed term by term with fma, in chunks of at most 768 terms that follow from k alone, so results depend neither on
// the target nor on how the caller cuts the iterations.
#pragma once
#include <stdint.h>

namespace tenon::kernels {

/// gemm_pack_T: buffers `from` and `to`; a matrix of each batch entry into panels of 16 columns, [panel][k][16], zeros
/// beyond the last column. Iterations: batch * panels. gemm_pack_f32_f16 and gemm_pack_f32_bf16 round to the nearest.
struct GemmPackParams {
  int64_t batch, k, n;
  int64_t from, from_batch, from_row, from_column;  // where it begins and its strides, in elements
  int64_t to, to_batch;
};

constexpr int64_t epilogue_bias = 1, epilogue_residual = 2, epilogue_relu = 4;  // flags

/// out = alpha * a * b + beta * out, + bias (one for each column), + residual, then relu; what is not flagged is left
/// out. Buffers: a, b, out, then bias and residual where flagged. The residual may be out's own memory, element by
/// element. Where beta is 0, out is not read. Iterations: batch * gemm_row_blocks(m) *
/// blocks of gemm_columns(m, n, k) columns; more do nothing. gemm_T: b is packed, a matrix of each batch entry
/// `b_batch` from the next. gemm_f32_f16, gemm_f32_bf16: b is packed in half precision, all else is f32; the results
/// are those of gemm_f32 on the same numbers. Scratch: gemm_scratch elements. gemm_unpacked_T: b has strides; for up to
/// 56 rows, beyond which packing first is faster. Scratch: gemm_unpacked_scratch elements.
struct GemmParams {
  int64_t batch, m, n, k, flags;
  double alpha, beta;
  int64_t a, a_batch, a_row, a_column;
  int64_t b, b_batch, b_row, b_column;
  int64_t out, out_batch, out_row, out_column;
  int64_t bias, bias_step;
  int64_t residual, residual_batch, residual_row, residual_column;
};
constexpr int64_t gemm_block_rows = 56, gemm_block_columns = 192, gemm_panel = 16;
/// Blocks of rows: an even number where one is not enough, so that an even number of threads finds equal parts. A block
/// of 56 rows takes images of 56, 28 and 14 places a side without a rest.
constexpr int64_t gemm_row_blocks(int64_t rows) {
  const int64_t two = 2 * gemm_block_rows;
  return rows <= gemm_block_rows ? (rows > 0 ? 1 : 0) : (rows + two - 1) / two * 2;
}
/// Columns of a block, for so many rows, columns and terms in all: nearly equal parts of whole panels, so that there is
/// no narrow rest, and more of them where blocks would be too few to share. Where rows are few, reading the right side
/// is all there is to do: blocks are one tile of eight panels wide, so that as many streams are read. Where the right
/// side is more than caches keep from run to run, blocks are one tile wide: its panels are used by all rows while those
/// of the next are fetched.
constexpr int64_t gemm_few_rows = 8, gemm_few_columns = 128, gemm_far_columns = 48, gemm_far_elements = 1 << 18;
constexpr int64_t gemm_columns(int64_t rows, int64_t columns, int64_t terms) {
  if (rows <= gemm_few_rows) return gemm_few_columns;
  if (rows > gemm_block_rows && columns * terms > gemm_far_elements) return gemm_far_columns;
  const int64_t panels = (columns + gemm_panel - 1) / gemm_panel;
  int64_t blocks = (columns + gemm_block_columns - 1) / gemm_block_columns;
  if (blocks * gemm_row_blocks(rows) < 4 && panels > 4 * blocks) blocks *= 2;
  if (blocks > 1 && blocks * gemm_row_blocks(rows) % 2 == 1) ++blocks;
  return blocks == 0 ? gemm_panel : (panels + blocks - 1) / blocks * gemm_panel;
}
/// Panels that are packed at once where columns lie side by side.
constexpr int64_t gemm_panels_together = 4;
constexpr int64_t gemm_scratch = gemm_block_rows * gemm_block_columns,
                  gemm_unpacked_scratch = gemm_scratch + 8 * 16 * 768;

}  // namespace tenon::kernels

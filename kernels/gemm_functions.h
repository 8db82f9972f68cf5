// The functions of gemm.h, for an element type; W: that of a packed right side.
#pragma once
#include "kernels/block.h"
#include "kernels/gemm.h"
#include "kernels/kernel.h"

namespace tenon::kernels {

static_assert(gemm_block_rows == block_rows && gemm_block_columns == block_columns && gemm_panel == panel_width);
static_assert(gemm_scratch == block_scratch && gemm_unpacked_scratch == unpacked_scratch);

template <class To, class From>
int gemm_pack(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<GemmPackParams>(args);
  const int64_t panels = ceil_div(p.n, panel_width);
  for (int64_t i = lo, together = 1; i < hi; i += together) {
    const int64_t entry = i / panels, panel = i % panels, column = panel * panel_width;
    const From* from = buffer<From>(args, 0) + p.from + entry * p.from_batch + column * p.from_column;
    To* to = buffer<To>(args, 1) + p.to + entry * p.to_batch + panel * p.k * panel_width;
    together = least(least(hi - i, gemm_panels_together), p.n / panel_width - panel);
    if (p.from_column == 1 && together > 1) {
      pack_panels(from, p.from_row, together, p.k, to, p.k * panel_width);
      continue;
    }
    together = 1;
    pack_panel(from, p.from_row, p.from_column, least(p.n - column, int64_t{panel_width}), p.k, to);
  }
  return TENON_KERNEL_OK;
}

template <class T, class W = T>
int gemm(const tenon_args& args, int64_t lo, int64_t hi, bool packed) {
  const auto& p = params<GemmParams>(args);
  const RowBlocks row_blocks(p.m);
  const int64_t width = gemm_columns(p.m, p.n, p.k), column_blocks = ceil_div(p.n, width);
  const BlockOrder order(row_blocks.count, column_blocks, p.m, p.k, p.k, p.n);
  const BlockEpilogue epilogue(args);
  int status = TENON_KERNEL_OK;
  Block<T> b;
  b.terms.length = p.k;
  b.terms.step = p.a_column;
  b.packed = packed;
  b.far = packed && p.k * p.n * static_cast<int64_t>(sizeof(W)) > (2 << 20);
  b.panel_step = p.k * panel_width;
  b.right_row = p.b_row;
  b.right_column = p.b_column;
  b.out_step = p.out_column;
  b.alpha = static_cast<T>(p.alpha);
  b.beta = static_cast<T>(p.beta);
  b.relu = p.flags & epilogue_relu;
  b.scratch = static_cast<T*>(args.scratch);
  const T* const bias = p.flags & epilogue_bias ? buffer<T>(args, 3) + p.bias : nullptr;
  b.bias_step = p.bias_step;
  b.turns = order.together();
  b.has_residual = p.flags & epilogue_residual;
  b.residual_step = p.residual_column;
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t entry = i / order.count();
    const auto [rb, cb] = order.at(i - entry * order.count());
    const int64_t column = cb * width;
    const int64_t row = row_blocks.begin(rb);
    b.rows = row_blocks.begin(rb + 1) - row;
    if (b.rows == 0 || entry >= p.batch) continue;
    b.columns = least(p.n - column, width);
    const T* a = buffer<T>(args, 0) + p.a + entry * p.a_batch + row * p.a_row;
    T* out = buffer<T>(args, 2) + p.out + entry * p.out_batch + row * p.out_row + column * p.out_column;
    for (int64_t r = 0; r < b.rows; ++r) {
      b.left[r] = a + r * p.a_row;
      b.out[r] = out + r * p.out_row;
    }
    if (b.has_residual) {
      const T* residual = buffer<T>(args, bias != nullptr ? 4 : 3) + p.residual + entry * p.residual_batch +
                          row * p.residual_row + column * p.residual_column;
      for (int64_t r = 0; r < b.rows; ++r) b.residual[r] = residual + r * p.residual_row;
    }
    const W* const right = buffer<W>(args, 1) + p.b + entry * p.b_batch +
                           (packed ? cb * (width / panel_width) * b.panel_step : column * p.b_column);
    b.right = right;
    b.then = packed && cb + 1 < column_blocks ? right + width / panel_width * b.panel_step : nullptr;
    b.turn = rb % b.turns;
    b.bias = bias == nullptr ? nullptr : bias + column * p.bias_step;
    run_block<T, W>(b);
    status |= epilogue(entry * p.m + row, b.rows, column, b.columns);
  }
  return status;
}

}  // namespace tenon::kernels

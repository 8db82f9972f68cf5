// The functions of convolution.h for groups of many channels, for an element type.
#pragma once
#include "kernels/block.h"
#include "kernels/gemm.h"
#include "kernels/kernel.h"
#include "kernels/taps.h"

namespace tenon::kernels {

/// to[j * rows + i] = from[i * from_step + j], for a few rows: stores that follow one another.
template <int rows, class T>
void interleave(const T* __restrict from, int64_t from_step, int64_t columns, T* __restrict to) {
  for (int64_t j = 0; j < columns; ++j)
    for (int i = 0; i < rows; ++i) to[j * rows + i] = from[i * from_step + j];
}

/// to[j * to_step + i] = from[i * from_step + j]
template <class T>
void transpose(const T* from, int64_t from_step, int64_t rows, int64_t columns, T* to, int64_t to_step) {
  if (rows == to_step) {
    if (rows == 1) return interleave<1>(from, from_step, columns, to);
    if (rows == 2) return interleave<2>(from, from_step, columns, to);
    if (rows == 3) return interleave<3>(from, from_step, columns, to);
  }
  int64_t i = 0;
  if constexpr (sizeof(T) == 4) {
    for (; i + 4 <= rows; i += 4) {
      int64_t j = 0;
      for (; j + 4 <= columns; j += 4)
        transpose_4x4(from + i * from_step + j, from_step, to + j * to_step + i, to_step);
      for (; j < columns; ++j)
        for (int64_t r = i; r < i + 4; ++r) to[j * to_step + r] = from[r * from_step + j];
    }
  }
  for (; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * to_step + i] = from[i * from_step + j];
}

/// Elements that lie side by side, or zeros, a vector at a time.
template <class T>
TENON_INLINE void copy_line(const T* from, int64_t n, T* to) {
  for (; n >= lanes<T>; n -= lanes<T>, from += lanes<T>, to += lanes<T>) {
    Vector<T> x = load<T>(from);
    keep(x);  // or compilers would call a function that copies bytes
    store(to, x);
  }
  if (n > 0) store_first(to, load_first(from, n), n);
}
template <class T>
TENON_INLINE void zero_line(int64_t n, T* to) {
  Vector<T> zero{};
  for (; n >= lanes<T>; n -= lanes<T>, to += lanes<T>) {
    keep(zero);
    store(to, zero);
  }
  if (n > 0) store_first(to, zero, n);
}

template <class T>
int convolution_stage_planar(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<ConvolutionStageParams>(args);
  const int64_t first = least(p.span[2], greatest(int64_t{0}, -p.lo[2]));
  const int64_t last = greatest(first, least(p.span[2], p.size[2] - p.lo[2]));
  for (int64_t i = lo; i < hi; ++i) {
    T* to = buffer<T>(args, 1) + p.to + i * p.span[2];
    const int64_t y = i % p.span[1] + p.lo[1], z = i / p.span[1] % p.span[0] + p.lo[0];
    const int64_t c = i / p.span[1] / p.span[0] % p.channels, n = i / p.span[1] / p.span[0] / p.channels;
    const bool inside = y >= 0 && y < p.size[1] && z >= 0 && z < p.size[0];
    const T* from = buffer<T>(args, 0) + p.from + n * p.from_batch + c * p.from_channel + z * p.from_stride[0] +
                    y * p.from_stride[1] + p.lo[2] * p.from_stride[2];
    for (int64_t x = 0; x < first; ++x) to[x] = 0;
    for (int64_t x = first; x < last; ++x) to[x] = inside ? from[x * p.from_stride[2]] : T(0);
    for (int64_t x = last; x < p.span[2]; ++x) to[x] = 0;
  }
  return TENON_KERNEL_OK;
}

template <class T>
int convolution_stage(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<ConvolutionStageParams>(args);
  if (p.planar) return convolution_stage_planar<T>(args, lo, hi);
  const int64_t row_size = p.span[2] * p.channels;
  // Places [first, last) of a staged row lie in the source.
  const int64_t first = least(p.span[2], greatest(int64_t{0}, -p.lo[2]));
  const int64_t last = greatest(first, least(p.span[2], p.size[2] - p.lo[2]));
  for (int64_t i = lo; i < hi; ++i) {
    T* to = buffer<T>(args, 1) + p.to + i * row_size;
    const int64_t y = i % p.span[1] + p.lo[1], z = i / p.span[1] % p.span[0] + p.lo[0], n = i / p.span[1] / p.span[0];
    if (y < 0 || y >= p.size[1] || z < 0 || z >= p.size[0]) {
      zero_line(row_size, to);
      continue;
    }
    const T* from = buffer<T>(args, 0) + p.from + n * p.from_batch + z * p.from_stride[0] + y * p.from_stride[1] +
                    (first + p.lo[2]) * p.from_stride[2];
    zero_line(first * p.channels, to);
    T* inside = to + first * p.channels;
    if (p.from_channel == 1 && p.from_stride[2] == p.channels) {
      copy_line(from, (last - first) * p.channels, inside);
    } else if (p.from_channel == 1) {
      for (int64_t x = first; x < last; ++x, from += p.from_stride[2], inside += p.channels)
        copy_line(from, p.channels, inside);
    } else if (p.from_stride[2] == 1) {
      transpose(from, p.from_channel, p.channels, last - first, inside, p.channels);
    } else {
      for (int64_t x = first; x < last; ++x, from += p.from_stride[2], inside += p.channels)
        for (int64_t c = 0; c < p.channels; ++c) inside[c] = from[c * p.from_channel];
    }
    zero_line(row_size - last * p.channels, to + last * p.channels);
  }
  return TENON_KERNEL_OK;
}

template <class T>
int convolution_pack(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<ConvolutionPackParams>(args);
  const int64_t panels = ceil_div(p.columns, panel_width), phase_count = all_phases(p.taps);
  const int64_t size[3] = {1, 1, 1};
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t panel = i % panels, column = panel * panel_width;
    const T* from = buffer<T>(args, 0) + p.from + i / panels * p.from_group + column * p.from_column;
    for (int64_t index = 0; index < phase_count; ++index) {
      const Phase phase(p.taps, size, index);
      const Axis(&a)[3] = phase.axis;
      T* to =
          buffer<T>(args, 1) + p.to + (phase.taps_before * p.groups * panels + i * phase.taps) * p.inner * panel_width;
      for (int64_t z = 0; z < a[0].taps; ++z)
        for (int64_t y = 0; y < a[1].taps; ++y)
          for (int64_t x = 0; x < a[2].taps; ++x, to += p.inner * panel_width)
            pack_panel(from + (a[0].kernel + z * a[0].kernel_step) * p.from_stride[0] +
                           (a[1].kernel + y * a[1].kernel_step) * p.from_stride[1] +
                           (a[2].kernel + x * a[2].kernel_step) * p.from_stride[2],
                       p.from_inner, p.from_column, least(p.columns - column, int64_t{panel_width}), p.inner, to);
    }
  }
  return TENON_KERNEL_OK;
}

template <class T>
int convolution(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<ConvolutionParams>(args);
  const int64_t panels = ceil_div(p.columns, panel_width);
  const int64_t points = p.batch * Phase(p.taps, p.size, 0).points();
  const int64_t taps = p.taps.kernel[0] * p.taps.kernel[1] * p.taps.kernel[2];
  const int64_t width = gemm_columns(points, p.columns, taps * p.inner), column_blocks = ceil_div(p.columns, width);
  const BlockEpilogue epilogue(args);
  int status = TENON_KERNEL_OK;
  Block<T> b;
  b.out_step = p.out_channel;
  b.residual_step = p.residual_channel;
  b.bias_step = p.bias_step;
  b.has_residual = p.flags & epilogue_residual;
  b.relu = p.flags & epilogue_relu;
  b.far = points <= gemm_few_rows;
  b.scratch = static_cast<T*>(args.scratch);
  const T* const bias = p.flags & epilogue_bias ? buffer<T>(args, 3) + p.bias : nullptr;
  const T* const residual = b.has_residual ? buffer<T>(args, bias != nullptr ? 4 : 3) + p.residual : nullptr;
  const BlockOrder order(RowBlocks(points).count, column_blocks, points, p.inner, taps * p.inner, p.columns);
  b.turns = order.together();
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t products = i / order.count();
    const auto [point_block, column_block] = order.at(i - products * order.count());
    const int64_t g = products % p.groups, index = products / p.groups;
    if (index >= all_phases(p.taps)) continue;
    const Phase phase(p.taps, p.size, index);
    const Axis(&a)[3] = phase.axis;
    const RowBlocks rows(p.batch * phase.points());
    if (point_block >= rows.count) continue;
    const int64_t first = rows.begin(point_block), column = column_block * width;
    b.rows = rows.begin(point_block + 1) - first;
    if (b.rows == 0) continue;
    b.columns = least(p.columns - column, width);

    const int64_t steps[3] = {a[0].tap_step * p.source_stride[0], a[1].tap_step * p.source_stride[1],
                              a[2].tap_step * p.source_stride[2]};
    b.terms = {{1, a[0].taps, a[1].taps, a[2].taps}, {0, steps[0], steps[1], steps[2]}, p.inner, 1};
    if (steps[2] == p.inner || a[2].taps == 1) {  // a row of taps lies side by side
      b.terms.length *= a[2].taps;
      b.terms.extent[3] = 1;
    }
    b.panel_step = phase.taps * p.inner * panel_width;
    const T* const weights = buffer<T>(args, 1) + p.weights +
                             phase.taps_before * p.groups * panels * p.inner * panel_width +
                             (g * panels + column / panel_width) * b.panel_step;
    b.right = weights;
    b.then = column_block + 1 < column_blocks ? weights + width / panel_width * b.panel_step : nullptr;
    b.turn = point_block % b.turns;

    const int64_t channel = g * p.columns + column;
    const T* source = buffer<T>(args, 0) + p.source + g * p.inner;
    T* out = buffer<T>(args, 2) + p.out + channel * p.out_channel;
    Point at = Point::at(a, first);
    for (int64_t r = 0; r < b.rows; at.next_row(a)) {  // places of one row after another
      const T* left = source + at.n * p.source_batch + (at.z * a[0].step + a[0].offset) * p.source_stride[0] +
                      (at.y * a[1].step + a[1].offset) * p.source_stride[1] +
                      (at.x * a[2].step + a[2].offset) * p.source_stride[2];
      const int64_t z = a[0].place(at.z), y = a[1].place(at.y), x = a[2].place(at.x);
      T* to = out + at.n * p.out_batch + z * p.out_stride[0] + y * p.out_stride[1] + x * p.out_stride[2];
      const int64_t last = least(b.rows, r + a[2].grid - at.x);
      const int64_t left_step = a[2].step * p.source_stride[2], to_step = a[2].out_step * p.out_stride[2];
      if (b.has_residual) {
        const T* add = residual + channel * p.residual_channel + at.n * p.residual_batch + z * p.residual_stride[0] +
                       y * p.residual_stride[1] + x * p.residual_stride[2];
        const int64_t add_step = a[2].out_step * p.residual_stride[2];
        for (int64_t i = r; i < last; ++i) b.residual[i] = add + (i - r) * add_step;
      }
      for (int64_t i = r; i < last; ++i) b.left[i] = left + (i - r) * left_step;
      for (int64_t i = r; i < last; ++i) b.out[i] = to + (i - r) * to_step;
      r = last;
    }
    b.bias = bias == nullptr ? nullptr : bias + channel * p.bias_step;
    run_block(b);
    status |= epilogue(first, b.rows, channel, b.columns);
  }
  return status;
}

template <class T>
int convolution_points(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<ConvolutionPointsParams>(args);
  const int64_t panels = ceil_div(p.columns, panel_width), rows = p.size[0] * p.size[1];
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t y = i % p.size[1], z = i / p.size[1] % p.size[0], n = i / rows % p.batch;
    const int64_t panel = i / rows / p.batch % panels, g = i / rows / p.batch / panels, column = panel * panel_width;
    const T* from = buffer<T>(args, 0) + p.from + n * p.from_batch + (g * p.columns + column) * p.from_channel +
                    z * p.from_stride[0] + y * p.from_stride[1];
    pack_panel(from, p.from_stride[2], p.from_channel, least(p.columns - column, int64_t{panel_width}), p.size[2],
               buffer<T>(args, 1) + p.to + i * p.size[2] * panel_width);
  }
  return TENON_KERNEL_OK;
}

static_assert(convolution_weight_scratch == gathered_scratch);

template <class T>
int convolution_weight(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<ConvolutionWeightParams>(args);
  const ConvolutionTaps& t = p.taps;
  const int64_t taps = t.kernel[0] * t.kernel[1] * t.kernel[2];
  const RowBlocks rows(taps * p.inner);  // taps innermost: so they lie in the weights
  const int64_t column_blocks = ceil_div(p.columns, block_columns);
  Block<T> b;
  b.out_step = p.out_column;
  b.scratch = static_cast<T*>(args.scratch);
  b.terms = {{1, p.batch, p.size[0], p.size[1]},
             {0, p.source_batch, t.stride[0] * p.source_stride[0], t.stride[1] * p.source_stride[1]},
             p.size[2],
             t.stride[2] * p.source_stride[2]};
  b.panel_step = p.batch * p.size[0] * p.size[1] * p.size[2] * panel_width;
  // The channels that the rows of a block reach, read eight at a time.
  const int64_t channels = (ceil_div(taps + block_rows - 1, taps) + 7) / 8 * 8;
  const bool gathers = p.source_channel == 1 && taps > 1 && p.inner >= channels && taps * channels <= most_gathered;
  if (gathers) b.groups = taps, b.group_width = channels;
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t row_block = i % rows.count, column_block = i / rows.count % column_blocks;
    const int64_t g = i / rows.count / column_blocks, first = rows.begin(row_block);
    if (g >= p.groups) continue;
    const int64_t column = column_block * block_columns;
    b.rows = rows.begin(row_block + 1) - first;
    if (b.rows == 0) continue;
    b.columns = least(p.columns - column, block_columns);
    b.right =
        buffer<T>(args, 1) + p.points + (g * ceil_div(p.columns, panel_width) + column / panel_width) * b.panel_step;
    const T* source = buffer<T>(args, 0) + p.source + g * p.inner * p.source_channel;
    T* out = buffer<T>(args, 2) + p.out + g * p.out_group + column * p.out_column;
    const int64_t first_channel = least(first / taps, p.inner - channels);
    auto place_of = [&](int64_t tap) {
      const int64_t k[3] = {tap / t.kernel[2] / t.kernel[1], tap / t.kernel[2] % t.kernel[1], tap % t.kernel[2]};
      int64_t at = 0;
      for (int d = 0; d < 3; ++d) at += (k[d] * t.dilation[d] - t.padding[d]) * p.source_stride[d];
      return at;
    };
    for (int64_t tap = 0; gathers && tap < taps; ++tap) b.group[tap] = source + first_channel + place_of(tap);
    for (int64_t r = 0; r < b.rows; ++r) {
      const int64_t c = (first + r) / taps, tap = (first + r) % taps;
      if (gathers) b.row_at[r] = tap * channels + c - first_channel;
      b.left[r] = source + c * p.source_channel + place_of(tap);
      b.out[r] = out + c * p.out_inner;
      const int64_t k[3] = {tap / t.kernel[2] / t.kernel[1], tap / t.kernel[2] % t.kernel[1], tap % t.kernel[2]};
      for (int d = 0; d < 3; ++d) b.out[r] += k[d] * p.out_stride[d];
    }
    run_block(b);
  }
  return TENON_KERNEL_OK;
}

}  // namespace tenon::kernels

// Convolutions of 3 x 3 by Winograd's F(2, 3), for an element type: four results of a tile of 2 x 2 from sixteen
// products instead of thirty-six. A block of tiles is turned into sixteen matrices of tiles and channels, multiplied by
// the sixteen matrices of transformed weights, and turned back. Every step is done in one order on every target.
#pragma once
#include "kernels/block.h"
#include "kernels/kernel.h"
#include "kernels/winograd.h"

namespace tenon::kernels {

/// The weights of 16 columns, g[tap][column], as position i of them at `u` + i * `step`: G g G',
/// G = (1 0 0; .5 .5 .5; .5 -.5 .5; 0 0 1).
template <class T>
TENON_INLINE void transform_weights(const T (*g)[panel_width], T* u, int64_t step) {
  T rows[12][panel_width];  // G g: four rows of three
  for (int j = 0; j < 3; ++j)
    for (int c = 0; c < panel_width; ++c) {
      const T both = g[j][c] + g[6 + j][c];
      rows[j][c] = g[j][c];
      rows[3 + j][c] = (both + g[3 + j][c]) * T(0.5);
      rows[6 + j][c] = (both - g[3 + j][c]) * T(0.5);
      rows[9 + j][c] = g[6 + j][c];
    }
  for (int i = 0; i < 4; ++i, u += 4 * step)
    for (int c = 0; c < panel_width; ++c) {
      const T both = rows[3 * i][c] + rows[3 * i + 2][c];
      u[c] = rows[3 * i][c];
      u[step + c] = (both + rows[3 * i + 1][c]) * T(0.5);
      u[2 * step + c] = (both - rows[3 * i + 1][c]) * T(0.5);
      u[3 * step + c] = rows[3 * i + 2][c];
    }
}

/// Sixteen inner channels at a time: the sixteen matrices lie far apart, so each is written in runs of a kilobyte.
template <class T>
int convolution_winograd_pack(const tenon_args& args, int64_t lo, int64_t hi) {
  constexpr int64_t together = 16, step = together * panel_width;
  const auto& p = params<ConvolutionPackParams>(args);
  const int64_t panels = ceil_div(p.columns, panel_width), position = panels * p.inner * panel_width;
  const bool taps_follow = p.from_stride[1] == 3 && p.from_stride[2] == 1;
  T g[together][9][panel_width], u[winograd_positions * step];
  for (int64_t panel = lo; panel < hi; ++panel) {
    const int64_t column = panel * panel_width, columns = least(p.columns - column, int64_t{panel_width});
    const T* from = buffer<T>(args, 0) + p.from + column * p.from_column;
    T* to = buffer<T>(args, 1) + p.to + panel * p.inner * panel_width;
    for (int64_t first = 0; first < p.inner; first += together, from += together * p.from_inner, to += step) {
      const int64_t count = least(p.inner - first, together);
      if (taps_follow && p.from_inner == 9) pack_panel(from, 1, p.from_column, columns, 9 * count, &g[0][0][0]);
      else
        for (int64_t c = 0; c < count; ++c) {
          if (taps_follow) pack_panel(from + c * p.from_inner, 1, p.from_column, columns, 9, &g[c][0][0]);
          else
            for (int64_t tap = 0; tap < 9; ++tap)
              pack_panel(from + c * p.from_inner + tap / 3 * p.from_stride[1] + tap % 3 * p.from_stride[2], 0,
                         p.from_column, columns, 1, &g[c][tap][0]);
        }
      for (int64_t c = 0; c < count; ++c) transform_weights(g[c], u + c * panel_width, step);
      for (int64_t i = 0; i < winograd_positions; ++i) {
        // Taps turned round change the first of G's four rows for the last, in both directions.
        auto turned = [](int64_t k) { return k % 3 == 0 ? 3 - k : k; };
        const int64_t at = p.taps.gradient ? 4 * turned(i / 4) + turned(i % 4) : i;
        for (int64_t k = 0; k < count * panel_width; ++k) to[at * position + k] = u[i * step + k];
      }
    }
  }
  return TENON_KERNEL_OK;
}

namespace detail {

template <class T>
struct WinogradImage {
  const T* source;  // of place (0, 0)
  int64_t row, place, lo[2], hi[2];

  const T* at(int64_t y, int64_t x) const {
    return y >= lo[0] && y < hi[0] && x >= lo[1] && x < hi[1] ? source + y * row + x * place : nullptr;
  }
};

/// B' d B of the tile whose first input is (y, x), for all channels: position i goes to `to` + i * `step`.
/// B' = (1 0 -1 0; 0 1 1 0; 0 -1 1 0; 0 1 0 -1).
template <class T, bool edge>
void transform_inputs(const WinogradImage<T>& image, int64_t y, int64_t x, int64_t channels, T* to, int64_t step) {
  const T* at[16];
  for (int i = 0; i < 16; ++i) at[i] = edge ? image.at(y + i / 4, x + i % 4) : nullptr;
  const T* first = image.source + y * image.row + x * image.place;
  for (int64_t c = 0; c < channels; c += lanes<T>) {
    Vector<T> columns[16];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      Vector<T> d[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        if (edge) d[i] = at[4 * i + j] == nullptr ? Vector<T>{} : load<T>(at[4 * i + j] + c);
        else d[i] = load<T>(first + i * image.row + j * image.place + c);
      }
      columns[j] = d[0] - d[2];
      columns[4 + j] = d[1] + d[2];
      columns[8 + j] = d[2] - d[1];
      columns[12 + j] = d[1] - d[3];
    }
    T* out = to + c;
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const Vector<T>* d = columns + 4 * i;
      store(out + (4 * i) * step, d[0] - d[2]);
      store(out + (4 * i + 1) * step, d[1] + d[2]);
      store(out + (4 * i + 2) * step, d[2] - d[1]);
      store(out + (4 * i + 3) * step, d[1] - d[3]);
    }
  }
}

/// Where the four results of a tile go, and what is added to them; null for those beyond the image.
template <class T>
struct WinogradResults {
  T* out[4];
  const T* residual[4];
  const T* bias;
  bool has_residual, relu;
};

/// A' m A of one tile, A' = (1 1 1 0; 0 1 -1 -1), then the epilogue.
template <class T>
void transform_results(const T* from, int64_t step, int64_t columns, const WinogradResults<T>& r) {
  for (int64_t c = 0; c < columns; c += lanes<T>) {
    Vector<T> rows[8];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const Vector<T> m0 = load<T>(from + j * step + c), m1 = load<T>(from + (4 + j) * step + c);
      const Vector<T> m2 = load<T>(from + (8 + j) * step + c), m3 = load<T>(from + (12 + j) * step + c);
      rows[j] = m0 + m1 + m2;
      rows[4 + j] = m1 - m2 - m3;
    }
    Vector<T> sum[4];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      sum[2 * i] = rows[4 * i] + rows[4 * i + 1] + rows[4 * i + 2];
      sum[2 * i + 1] = rows[4 * i + 1] - rows[4 * i + 2] - rows[4 * i + 3];
    }
    const Vector<T> bias = r.bias == nullptr ? Vector<T>{} : load<T>(r.bias + c);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      if (r.out[i] == nullptr) continue;
      if (r.bias != nullptr) sum[i] = sum[i] + bias;
      if (r.has_residual) sum[i] = sum[i] + load<T>(r.residual[i] + c);
      if (r.relu) sum[i] = relu(sum[i]);
      store(r.out[i] + c, sum[i]);
    }
  }
}

}  // namespace detail

template <class T>
int convolution_winograd(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<ConvolutionParams>(args);
  const int64_t tiles_y = ceil_div(p.size[1], 2), tiles_x = ceil_div(p.size[2], 2), tiles = p.batch * tiles_y * tiles_x;
  const int64_t blocks = winograd_tile_blocks(tiles, p.inner), each = ceil_div(tiles, blocks);
  const int64_t panels = ceil_div(p.columns, panel_width);
  const int64_t panels_each = ceil_div(panels, winograd_column_blocks(panels, blocks));
  const int64_t padding[2] = {p.taps.gradient ? 2 - p.taps.padding[1] : p.taps.padding[1],
                              p.taps.gradient ? 2 - p.taps.padding[2] : p.taps.padding[2]};
  // Rows of the sixteen matrices; they do not begin at the same places of cache lines' sets.
  T* const inputs = static_cast<T*>(args.scratch);
  const int64_t input_step = each * p.inner + panel_width;
  T* const products = inputs + winograd_positions * input_step;
  const T* const bias = p.flags & epilogue_bias ? buffer<T>(args, 3) + p.bias : nullptr;
  detail::WinogradResults<T> results;
  results.has_residual = p.flags & epilogue_residual;
  results.relu = p.flags & epilogue_relu;
  const T* const residual = results.has_residual ? buffer<T>(args, bias != nullptr ? 4 : 3) + p.residual : nullptr;
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t first = i % blocks * each, count = least(each, tiles - first);
    if (count <= 0) continue;
    const int64_t panel = i / blocks * panels_each;
    const int64_t columns = least(panels_each, panels - panel) * panel_width;
    if (columns <= 0) continue;
    for (int64_t t = 0; t < count; ++t) {
      const int64_t at = first + t, ty = at / tiles_x % tiles_y, tx = at % tiles_x, n = at / tiles_x / tiles_y;
      const detail::WinogradImage<T> image{buffer<T>(args, 0) + p.source + n * p.source_batch,
                                           p.source_stride[1],
                                           p.source_stride[2],
                                           {p.lo[1], p.lo[2]},
                                           {p.hi[1], p.hi[2]}};
      const int64_t y = 2 * ty - padding[0], x = 2 * tx - padding[1];
      const bool edge = y < p.lo[1] || x < p.lo[2] || y + 4 > p.hi[1] || x + 4 > p.hi[2];
      if (edge) detail::transform_inputs<T, true>(image, y, x, p.inner, inputs + t * p.inner, input_step);
      else detail::transform_inputs<T, false>(image, y, x, p.inner, inputs + t * p.inner, input_step);
    }
    const int64_t product_step = count * columns + panel_width;
    Block<T> b;
    b.rows = count;
    b.columns = columns;
    b.terms.length = p.inner;
    b.panel_step = p.inner * panel_width;
    for (int64_t position = 0; position < winograd_positions; ++position) {
      for (int64_t t = 0; t < count; ++t) {
        b.left[t] = inputs + position * input_step + t * p.inner;
        b.out[t] = products + position * product_step + t * columns;
      }
      const T* const weights = buffer<T>(args, 1) + p.weights + (position * panels + panel) * b.panel_step;
      b.right = weights;
      b.then = position + 1 < winograd_positions ? weights + panels * b.panel_step : nullptr;
      run_block(b);
    }
    const int64_t channel = panel * panel_width;
    results.bias = bias == nullptr ? nullptr : bias + channel;
    for (int64_t t = 0; t < count; ++t) {
      const int64_t at = first + t, n = at / tiles_x / tiles_y;
      for (int64_t k = 0; k < 4; ++k) {
        const int64_t y = at / tiles_x % tiles_y * 2 + k / 2, x = at % tiles_x * 2 + k % 2;
        const bool there = y < p.size[1] && x < p.size[2];
        results.out[k] =
            there ? buffer<T>(args, 2) + p.out + channel + n * p.out_batch + y * p.out_stride[1] + x * p.out_stride[2]
                  : nullptr;
        results.residual[k] = there && results.has_residual ? residual + channel + n * p.residual_batch +
                                                                  y * p.residual_stride[1] + x * p.residual_stride[2]
                                                            : nullptr;
      }
      detail::transform_results(products + t * columns, product_step, columns, results);
    }
  }
  return TENON_KERNEL_OK;
}

}  // namespace tenon::kernels

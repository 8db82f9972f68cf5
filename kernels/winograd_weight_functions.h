// The gradient of the weights of a 3 x 3 convolution by Winograd's F(2, 3), for an element type. Forward is
// A'((G g G') . (B' d B))A for a tile of 2 x 2 results; so the gradient of g is G' u G, where u adds up, over all
// tiles, (A y A') . (B' d B) of y's tiles and d's: sixteen products of matrices instead of nine four times as large.
// Transformed values are larger than what they are made of, and differences of their sums are taken in the end: so few
// tiles are summed at a time, which makes errors as small as those of plain sums.
#pragma once
#include "kernels/block.h"
#include "kernels/kernel.h"
#include "kernels/winograd.h"
#include "kernels/winograd_functions.h"

namespace tenon::kernels {
namespace detail {

/// Row `row` of B' d B, for `channels` channels: position j goes to `to` + j * `step`.
template <class T, int row, bool edge>
void transform_input_row(const WinogradImage<T>& image, int64_t y, int64_t x, int64_t channels, T* to, int64_t step) {
  constexpr int plus = row == 2 ? 2 : row == 0 ? 0 : 1, other = row == 3 ? 3 : row == 2 ? 1 : 2;  // of d's four rows
  const T *first[4], *second[4];
  for (int j = 0; j < 4; ++j) {
    first[j] = edge ? image.at(y + plus, x + j) : image.source + (y + plus) * image.row + (x + j) * image.place;
    second[j] = edge ? image.at(y + other, x + j) : image.source + (y + other) * image.row + (x + j) * image.place;
  }
  auto value = [](const T* from, int64_t c) __attribute__((always_inline)) {
    return edge && from == nullptr ? Vector<T>{} : load<T>(from + c);
  };
  for (int64_t c = 0; c < channels; c += lanes<T>) {
    Vector<T> d[4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const Vector<T> a = value(first[j], c), b = value(second[j], c);
      d[j] = row == 1 ? a + b : a - b;
    }
    store(to + c, d[0] - d[2]);
    store(to + step + c, d[1] + d[2]);
    store(to + 2 * step + c, d[2] - d[1]);
    store(to + 3 * step + c, d[1] - d[3]);
  }
}

/// Row `row` of A y A' of the tile whose first result is (y, x), A = (1 0; 1 1; 1 -1; 0 -1): panels of 16 channels
/// `panel_step` apart, position j of each at `step` * j.
template <class T, int row>
void transform_gradient_row(const WinogradImage<T>& image, int64_t y, int64_t x, int64_t channels, T* to,
                            int64_t panel_step, int64_t step) {
  const T *first[2], *second[2];
  for (int j = 0; j < 2; ++j) {
    first[j] = image.at(y, x + j);
    second[j] = image.at(y + 1, x + j);
  }
  auto value = [](const T* from, int64_t c) __attribute__((always_inline)) {
    return from == nullptr ? Vector<T>{} : load<T>(from + c);
  };
  for (int64_t c = 0; c < channels; c += lanes<T>) {
    Vector<T> a[2];
#pragma GCC unroll 2
    for (int j = 0; j < 2; ++j) {
      if constexpr (row == 0) a[j] = value(first[j], c);
      else if constexpr (row == 1) a[j] = value(first[j], c) + value(second[j], c);
      else if constexpr (row == 2) a[j] = value(first[j], c) - value(second[j], c);
      else a[j] = -value(second[j], c);
    }
    T* out = to + c / panel_width * panel_step + c % panel_width;
    store(out, a[0]);
    store(out + step, a[0] + a[1]);
    store(out + 2 * step, a[0] - a[1]);
    store(out + 3 * step, -a[1]);
  }
}

/// Four of the sixteen positions, for some of the channels on either side.
template <class T, int row>
void winograd_weight_row(const tenon_args& args, int64_t inner_first, int64_t inner, int64_t column_first,
                         int64_t columns) {
  const auto& p = params<WinogradWeightParams>(args);
  const int64_t tiles_y = ceil_div(p.size[0], 2), tiles_x = ceil_div(p.size[1], 2), tiles = p.batch * tiles_y * tiles_x;
  const int64_t each = winograd_weight_tiles(p.inner, p.columns), panels = columns / panel_width;
  const int64_t pitch = inner + panel_width;  // rows of inputs do not begin at the same places of cache lines' sets
  T* const inputs = static_cast<T*>(args.scratch);
  T* const gradients = inputs + 4 * each * pitch;
  const int64_t input_step = each * pitch, panel_step = each * panel_width, gradient_step = panels * panel_step;
  for (int64_t done = 0; done == 0 || done < tiles; done += each) {  // without tiles sums are zero
    const int64_t count = least(each, tiles - done);
    for (int64_t t = 0; t < count; ++t) {
      const int64_t at = done + t, ty = at / tiles_x % tiles_y, tx = at % tiles_x, n = at / tiles_x / tiles_y;
      const WinogradImage<T> x{buffer<T>(args, 0) + p.source + n * p.source_batch + inner_first,
                               p.source_stride[0],
                               p.source_stride[1],
                               {0, 0},
                               {p.source_size[0], p.source_size[1]}};
      const WinogradImage<T> y{buffer<T>(args, 1) + p.y + n * p.y_batch + column_first,
                               p.y_stride[0],
                               p.y_stride[1],
                               {0, 0},
                               {p.size[0], p.size[1]}};
      const int64_t top = 2 * ty - p.padding[0], left = 2 * tx - p.padding[1];
      const bool edge = top < 0 || left < 0 || top + 4 > p.source_size[0] || left + 4 > p.source_size[1];
      if (edge) transform_input_row<T, row, true>(x, top, left, inner, inputs + t * pitch, input_step);
      else transform_input_row<T, row, false>(x, top, left, inner, inputs + t * pitch, input_step);
      transform_gradient_row<T, row>(y, 2 * ty, 2 * tx, columns, gradients + t * panel_width, panel_step,
                                     gradient_step);
    }
    Block<T> b;
    b.columns = columns;
    b.terms.step = pitch;
    b.panel_step = panel_step;
    const RowBlocks rows(inner);
    const int64_t parts = winograd_weight_parts(count);
    for (int64_t j = 0; j < 4; ++j)
      for (int64_t i = 0; i < rows.count; ++i) {
        const int64_t first = rows.begin(i);
        b.rows = rows.begin(i + 1) - first;
        if (b.rows == 0) continue;
        for (int64_t r = 0; r < b.rows; ++r)
          b.out[r] =
              buffer<T>(args, 2) + ((4 * row + j) * p.inner + inner_first + first + r) * p.columns + column_first;
        for (int64_t part = 0; part < parts; ++part) {
          const int64_t tile = count * part / parts;
          b.terms.length = count * (part + 1) / parts - tile;
          b.beta = done == 0 && part == 0 ? 0 : 1;
          b.right = gradients + j * gradient_step + tile * panel_width;
          for (int64_t r = 0; r < b.rows; ++r) b.left[r] = inputs + j * input_step + tile * pitch + first + r;
          run_block(b);
        }
      }
  }
}

}  // namespace detail

template <class T>
int convolution_winograd_weight(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<WinogradWeightParams>(args);
  const int64_t column_blocks = ceil_div(p.columns, block_columns);
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t column = i / 4 % column_blocks * block_columns, inner = i / 4 / column_blocks * block_columns;
    const int64_t columns = least(p.columns - column, block_columns), inners = least(p.inner - inner, block_columns);
    switch (i % 4) {
      case 0: detail::winograd_weight_row<T, 0>(args, inner, inners, column, columns); break;
      case 1: detail::winograd_weight_row<T, 1>(args, inner, inners, column, columns); break;
      case 2: detail::winograd_weight_row<T, 2>(args, inner, inners, column, columns); break;
      case 3: detail::winograd_weight_row<T, 3>(args, inner, inners, column, columns); break;
    }
  }
  return TENON_KERNEL_OK;
}

template <class T>
int convolution_winograd_weight_finish(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<WinogradWeightParams>(args);
  const int64_t panels = p.columns / panel_width, position = p.inner * p.columns;
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t inner = i / panels * panel_width, column = i % panels * panel_width;
    T kept[panel_width][9][panel_width];  // of sixteen pairs of channels: so results lie side by side when stored
    for (int64_t c = 0; c < panel_width; ++c) {
      const T* u = buffer<T>(args, 0) + (inner + c) * p.columns + column;
      for (int v = 0; v < panel_width; v += lanes<T>) {
        Vector<T> rows[12];  // G' u: three rows of four
#pragma GCC unroll 4
        for (int j = 0; j < 4; ++j) {
          const Vector<T> u0 = load<T>(u + j * position + v), u1 = load<T>(u + (4 + j) * position + v);
          const Vector<T> u2 = load<T>(u + (8 + j) * position + v), u3 = load<T>(u + (12 + j) * position + v);
          const Vector<T> both = (u1 + u2) * T(0.5);
          rows[j] = u0 + both;
          rows[4 + j] = (u1 - u2) * T(0.5);
          rows[8 + j] = both + u3;
        }
#pragma GCC unroll 3
        for (int k = 0; k < 3; ++k) {
          const Vector<T>* r = rows + 4 * k;
          const Vector<T> both = (r[1] + r[2]) * T(0.5);
          store(&kept[c][3 * k][v], r[0] + both);
          store(&kept[c][3 * k + 1][v], (r[1] - r[2]) * T(0.5));
          store(&kept[c][3 * k + 2][v], both + r[3]);
        }
      }
    }
    if (p.out_inner == 9 && p.out_stride[0] == 3 && p.out_stride[1] == 1) {  // nine taps of a channel follow another's
      T* const out = buffer<T>(args, 1) + p.out + column * p.out_column + inner * p.out_inner;
      for (int64_t o = 0; o < panel_width; o += 4)
        for (int64_t k = 0; k < 9 * panel_width; k += 4)
          transpose_4x4(&kept[k / 9][k % 9][o], panel_width, out + o * p.out_column + k, p.out_column);
      continue;
    }
    for (int64_t o = 0; o < panel_width; ++o) {
      T* out = buffer<T>(args, 1) + p.out + (column + o) * p.out_column + inner * p.out_inner;
      for (int64_t c = 0; c < panel_width; ++c, out += p.out_inner)
        for (int64_t tap = 0; tap < 9; ++tap)
          out[tap / 3 * p.out_stride[0] + tap % 3 * p.out_stride[1]] = kept[c][tap][o];
    }
  }
  return TENON_KERNEL_OK;
}

}  // namespace tenon::kernels

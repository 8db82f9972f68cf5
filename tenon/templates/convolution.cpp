#include "tenon/templates/convolution.h"

#include "tenon/templates/kernels.h"
#include "tenon/templates/pack.h"
#include "tenon/templates/parallel.h"
#include "tenon/templates/taps.h"

namespace tenon::templates {
namespace {

using Int = std::int64_t;

/// out[n, g * rows + r, point] = bias[g * rows + r] + sum over c and taps of
/// weight[g, r, c, tap] * source[n, g * inner + c, point * step + offset(tap)]: convolution and its input gradient.
template <class T>
struct TapSum {
  Int batch, groups, rows, inner;
  const Taps& taps;
  Volume<const T> source;
  const T* weight;
  Int weight_group, weight_row, weight_inner;
  const T* bias;
  T* out;
  Int out_stride[5];

  Int depth() const { return inner * taps.size(); }
  Int out_at(const Run& run) const { return run.z * out_stride[2] + run.y * out_stride[3] + run.x * out_stride[4]; }
};

template <class T>
void copy_strided(T* to, const T* from, Int count, Int step) {
  if (step == 1) __builtin_memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  else if (step == 2)
    for (Int i = 0; i < count; ++i) to[i] = from[2 * i];
  else
    for (Int i = 0; i < count; ++i) to[i] = from[i * step];
}

/// Columns [first, first + count) of the matrix (channel, tap) x points, depth k0 .. k0 + kc, as a panel [kc][width].
template <class T>
void pack_points(const TapSum<T>& s, const T* source, Int first, Int count, Int k0, Int kc, int width, T* to) {
  Run runs[64];
  Int origin[64];
  const int number = s.taps.runs(first, count, runs);
  for (int r = 0; r < number; ++r) origin[r] = s.taps.origin(runs[r]);
  const Int step = s.taps.step(), taps = s.taps.size();
  Int channel = k0 / taps, t = k0 % taps;
  for (Int k = 0; k < kc; ++k, to += width) {
    const Tap& tap = s.taps[t];
    const T* from = source + channel * s.source.stride[1] + tap.source;
    for (int r = 0; r < number; ++r) {
      Int lo, hi;
      s.taps.inside(runs[r], tap, lo, hi);
      T* at = to + runs[r].column;
      for (Int i = 0; i < lo; ++i) at[i] = 0;
      if (hi > lo) copy_strided(at + lo, from + origin[r] + lo * step, hi - lo, step);
      for (Int i = hi > lo ? hi : lo; i < runs[r].count; ++i) at[i] = 0;
    }
    for (Int i = count; i < width; ++i) to[i] = 0;
    if (++t == taps) t = 0, ++channel;
  }
}

/// All weights of one group as panels [depth block][row tile][k][height].
template <class T>
void pack_weights(const TapSum<T>& s, const T* weight, const DepthBlocks& depth, const RowTiles& tiles,
                  const Kernels<T>& kernel, Int lo, Int hi, const Int* tile_at, Int heights, T* to) {
  const Int taps = s.taps.size();
  bool linear = s.weight_inner == taps;
  for (Int t = 0; t < taps; ++t) linear = linear && s.taps[t].weight == t;
  for (Int tile = lo; tile < hi; ++tile) {
    const Int i = tiles.begin(tile), rows = tiles.begin(tile + 1) - i;
    const int height = kernel.height(static_cast<int>(rows));
    const T* from = weight + i * s.weight_row;
    for (Int d = 0; d < depth.count; ++d) {
      const Int k0 = d * depth.step, kc = depth.size(d);
      T* panel = to + k0 * heights + tile_at[tile] * kc;
      if (linear) {
        pack_rows(from + k0, s.weight_row, Int{1}, rows, kc, height, panel);
        continue;
      }
      Int channel = k0 / taps, t = k0 % taps;
      for (Int k = 0; k < kc; ++k, panel += height) {
        const T* at = from + channel * s.weight_inner + s.taps[t].weight;
        for (Int r = 0; r < height; ++r) panel[r] = r < rows ? at[r * s.weight_row] : T(0);
        if (++t == taps) t = 0, ++channel;
      }
    }
  }
}

/// The tile's sums into the output, point by point.
template <class T>
void scatter(const TapSum<T>& s, const T* sums, Int sums_row, Int rows, Int first, Int count, bool add, const T* bias,
             T* out) {
  Run runs[64];
  const int number = s.taps.runs(first, count, runs);
  for (Int i = 0; i < rows; ++i)
    for (int r = 0; r < number; ++r) {
      T* to = out + i * s.out_stride[1] + s.out_at(runs[r]);
      const T* from = sums + i * sums_row + runs[r].column;
      for (Int j = 0; j < runs[r].count; ++j) {
        T& at = to[j * s.out_stride[4]];
        if (add) at += from[j];
        else at = bias == nullptr ? from[j] : from[j] + bias[i];
      }
    }
}

template <class T>
void by_tiles(const TapSum<T>& s) {
  const Kernels<T>& kernel = kernels<T>();
  const int width = kernel.columns;
  const Int points = s.taps.points(), panels = ceil_div(points, width);
  const DepthBlocks depth(s.depth(), kernel.depth);
  const RowTiles tiles(s.rows, kernel.rows);
  const Int(&grid)[3] = s.taps.grid();
  const bool flat = s.out_stride[4] == 1 && (grid[1] == 1 || s.out_stride[3] == grid[2]) &&
                    (grid[0] == 1 || s.out_stride[2] == grid[1] * grid[2]);

  // Weights are packed once for everybody; a task packs the points of its panels and keeps them for all of its rows.
  std::vector<Int> tile_at(static_cast<std::size_t>(tiles.count) + 1, 0);
  for (Int t = 0; t < tiles.count; ++t)
    tile_at[static_cast<std::size_t>(t) + 1] =
        tile_at[static_cast<std::size_t>(t)] + kernel.height(static_cast<int>(tiles.begin(t + 1) - tiles.begin(t)));
  const Int heights = tile_at.back(), group_size = heights * s.depth();
  Scratch weights(s.groups * group_size * static_cast<Int>(sizeof(T)));
  parallel_for(s.groups * tiles.count, ceil_div(1 << 14, s.depth() * kernel.rows), [&](Int lo, Int hi) {
    for (Int i = lo; i < hi; ++i) {
      const Int g = i / tiles.count, t = i % tiles.count;
      pack_weights(s, s.weight + g * s.weight_group, depth, tiles, kernel, t, t + 1, tile_at.data(), heights,
                   weights.as<T>() + g * group_size);
    }
  });

  const Int wanted = 4 * threads();
  Int block = 8;  // panels
  while (block > 2 && s.batch * s.groups * ceil_div(panels, block) < wanted) block /= 2;
  const Int blocks = ceil_div(panels, block), outer = s.batch * s.groups * blocks;
  Int row_blocks = outer < wanted ? ceil_div(wanted, outer) : 1;
  if (row_blocks > ceil_div(tiles.count, 4)) row_blocks = ceil_div(tiles.count, 4);

  const Int work = s.depth() * block * width * ceil_div(s.rows, row_blocks);
  parallel_for(outer * row_blocks, ceil_div(1 << 15, work), [&](Int lo, Int hi) {
    Scratch point_memory(depth.step * block * width * static_cast<Int>(sizeof(T)));
    T* const right = point_memory.as<T>();
    T sums[16 * 64];
    for (Int task = lo; task < hi; ++task) {
      const Int rb = task % row_blocks, pb = task / row_blocks % blocks, image = task / row_blocks / blocks;
      const Int g = image % s.groups, n = image / s.groups;
      const T* source = s.source.data + n * s.source.stride[0] + g * s.inner * s.source.stride[1];
      T* out = s.out + n * s.out_stride[0] + g * s.rows * s.out_stride[1];
      const Int first_panel = panels * pb / blocks, last_panel = panels * (pb + 1) / blocks;
      const Int first_tile = tiles.count * rb / row_blocks, last_tile = tiles.count * (rb + 1) / row_blocks;
      for (Int d = 0; d < depth.count; ++d) {
        const Int k0 = d * depth.step, kc = depth.size(d);
        for (Int p = first_panel; p < last_panel; ++p) {
          const Int point = p * width, count = points - point < width ? points - point : width;
          pack_points(s, source, point, count, k0, kc, width, right + (p - first_panel) * kc * width);
        }
        for (Int p = first_panel; p < last_panel; ++p) {
          const Int point = p * width, count = points - point < width ? points - point : width;
          const bool narrow = 2 * count <= width;
          const Int computed = narrow ? width / 2 : width;
          const T* panel = right + (p - first_panel) * kc * width;
          for (Int t = first_tile; t < last_tile; ++t) {
            const Int i = tiles.begin(t), rows = tiles.begin(t + 1) - i;
            const int height = kernel.height(static_cast<int>(rows));
            const TileFunction<T> tile = narrow ? kernel.narrow[height] : kernel.tile[height];
            const T* left = weights.as<T>() + g * group_size + k0 * heights + tile_at[static_cast<std::size_t>(t)] * kc;
            const T* bias = s.bias == nullptr ? nullptr : s.bias + g * s.rows + i;
            T* to = out + i * s.out_stride[1];
            if (flat && count == computed) {
              if (d == 0 && bias != nullptr)
                for (Int r = 0; r < rows; ++r)
                  for (Int j = 0; j < count; ++j) to[r * s.out_stride[1] + point + j] = bias[r];
              tile(kc, left, panel, width, to + point, s.out_stride[1], static_cast<int>(rows),
                   d != 0 || bias != nullptr);
            } else {
              tile(kc, left, panel, width, sums, computed, static_cast<int>(rows), false);
              scatter(s, sums, computed, rows, point, count, d != 0, bias, to);
            }
          }
        }
      }
    }
  });
}

/// Few channels to a group (depthwise): a row of points at a time, one tap after another. Also where no tap reaches.
template <class T>
void by_rows(const TapSum<T>& s) {
  const Kernels<T>& kernel = kernels<T>();
  const Int(&grid)[3] = s.taps.grid();
  const Int step = s.taps.step(), lines = grid[0] * grid[1];
  parallel_for(s.batch * s.groups * s.rows, ceil_div(1 << 14, s.taps.points() * (s.depth() + 1)), [&](Int lo, Int hi) {
    Scratch row_memory(grid[2] * static_cast<Int>(sizeof(T)));
    for (Int task = lo; task < hi; ++task) {
      const Int r = task % s.rows, g = task / s.rows % s.groups, n = task / s.rows / s.groups;
      const T* source = s.source.data + n * s.source.stride[0] + g * s.inner * s.source.stride[1];
      const T* weight = s.weight + g * s.weight_group + r * s.weight_row;
      const T start = s.bias == nullptr ? T(0) : s.bias[g * s.rows + r];
      for (Int line = 0; line < lines; ++line) {
        const Run run{0, grid[2], line / grid[1], line % grid[1], 0};
        T* out = s.out + n * s.out_stride[0] + (g * s.rows + r) * s.out_stride[1] + s.out_at(run);
        T* const row = s.out_stride[4] == 1 ? out : row_memory.as<T>();
        for (Int x = 0; x < grid[2]; ++x) row[x] = start;
        for (Int c = 0; c < s.inner; ++c)
          for (Int t = 0; t < s.taps.size(); ++t) {
            Int first, last;
            s.taps.inside(run, s.taps[t], first, last);
            if (first >= last) continue;
            const T factor = weight[c * s.weight_inner + s.taps[t].weight];
            const T* from = source + c * s.source.stride[1] + s.taps.origin(run) + s.taps[t].source + first * step;
            T* to = row + first;
            if (step == 1) kernel.add_scaled(last - first, factor, from, to);
            else
              for (Int x = 0; x < last - first; ++x) to[x] += factor * from[x * step];
          }
        if (row != out)
          for (Int x = 0; x < grid[2]; ++x) out[x * s.out_stride[4]] = row[x];
      }
    }
  });
}

template <class T>
void run(const TapSum<T>& s) {
  if (s.batch == 0 || s.groups * s.rows == 0 || s.taps.points() <= 0) return;
  if (s.depth() == 0 || s.rows * s.inner <= 4) by_rows(s);
  else by_tiles(s);
}

template <class T>
void forward(const ConvShape& c, Volume<const T> x, Volume<const T> w, const T* bias, Volume<T> y) {
  const Axis axes[3] = {forward_axis(c, 0), forward_axis(c, 1), forward_axis(c, 2)};
  const Taps taps(axes, x.stride + 2, w.stride + 2);
  const Int rows = c.out_channels / c.groups, inner = c.in_channels / c.groups;
  TapSum<T> s{c.batch,     c.groups,    rows, inner,  taps, x, w.data, rows * w.stride[0],
              w.stride[0], w.stride[1], bias, y.data, {}};
  for (int i = 0; i < 5; ++i) s.out_stride[i] = y.stride[i];
  run(s);
}

/// The inputs fall into classes modulo the stride; each class is a plain sum over those taps that reach it.
template <class T>
void backward(const ConvShape& c, Volume<const T> y, Volume<const T> w, const T* bias, Volume<T> x) {
  const Int rows = c.in_channels / c.groups, inner = c.out_channels / c.groups;
  for (Int z = 0; z < c.stride[0] && z < c.in[0]; ++z)
    for (Int v = 0; v < c.stride[1] && v < c.in[1]; ++v)
      for (Int u = 0; u < c.stride[2] && u < c.in[2]; ++u) {
        const Axis axes[3] = {gradient_axis(c, 0, z), gradient_axis(c, 1, v), gradient_axis(c, 2, u)};
        const Taps taps(axes, y.stride + 2, w.stride + 2);
        TapSum<T> s{c.batch,     c.groups,    rows,   inner,
                    taps,        y,           w.data, inner * w.stride[0],
                    w.stride[1], w.stride[0], bias,   x.data + z * x.stride[2] + v * x.stride[3] + u * x.stride[4],
                    {}};
        const Int step[5] = {1, 1, c.stride[0], c.stride[1], c.stride[2]};
        for (int i = 0; i < 5; ++i) s.out_stride[i] = x.stride[i] * step[i];
        run(s);
      }
}

}  // namespace

template <class T>
void convolution(const ConvShape& shape, Volume<const T> input, Volume<const T> weight, const T* bias,
                 Volume<T> output) {
  if (shape.transposed) backward(untransposed(shape), input, weight, bias, output);
  else forward(shape, input, weight, bias, output);
}

template <class T>
void convolution_input_gradient(const ConvShape& shape, Volume<const T> output_gradient, Volume<const T> weight,
                                Volume<T> input_gradient) {
  if (shape.transposed) forward<T>(untransposed(shape), output_gradient, weight, nullptr, input_gradient);
  else backward<T>(shape, output_gradient, weight, nullptr, input_gradient);
}

#define TENON_INSTANCE(T)                                                                                \
  template void convolution<T>(const ConvShape&, Volume<const T>, Volume<const T>, const T*, Volume<T>); \
  template void convolution_input_gradient<T>(const ConvShape&, Volume<const T>, Volume<const T>, Volume<T>);
TENON_INSTANCE(float)
TENON_INSTANCE(double)
#undef TENON_INSTANCE

}  // namespace tenon::templates

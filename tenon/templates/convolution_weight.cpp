#include <vector>

#include "tenon/templates/convolution.h"
#include "tenon/templates/kernels.h"
#include "tenon/templates/pack.h"
#include "tenon/templates/parallel.h"
#include "tenon/templates/taps.h"

namespace tenon::templates {
namespace {

using Int = std::int64_t;

/// weight[g, r, c, tap] = sum over images and points of y[n, g * rows + r, point] * x[n, g * inner + c, point, tap].
template <class T>
struct WeightSum {
  Int batch, groups, rows, inner;
  const Taps& taps;
  Volume<const T> x, y;
  Volume<T> weight;

  Int columns() const { return inner * taps.size(); }
  T& at(Int g, Int r, Int column) const {
    return weight.data[(g * rows + r) * weight.stride[0] + column / taps.size() * weight.stride[1] +
                       taps[column % taps.size()].weight];
  }
  Int y_at(const Run& run) const { return run.z * y.stride[2] + run.y * y.stride[3] + run.x * y.stride[4]; }
};

/// Points of `rows` rows of y as [point][height].
template <class T>
void pack_y(const WeightSum<T>& s, const T* y, const Run* runs, int number, Int points, Int rows, int height, T* to) {
  for (Int i = 0; i < height; ++i) {
    if (i >= rows) {
      for (Int p = 0; p < points; ++p) to[p * height + i] = 0;
      continue;
    }
    for (int r = 0; r < number; ++r) {
      const T* from = y + i * s.y.stride[1] + s.y_at(runs[r]);
      T* at = to + runs[r].column * height + i;
      for (Int p = 0; p < runs[r].count; ++p) at[p * height] = from[p * s.y.stride[4]];
    }
  }
}

/// Columns (channel, tap) [first, first + count) as [point][width].
template <class T>
void pack_x(const WeightSum<T>& s, const T* x, const Run* runs, int number, Int points, Int first, Int count, int width,
            T* to) {
  const Int step = s.taps.step();
  for (Int j = 0; j < width; ++j) {
    if (j >= count) {
      for (Int p = 0; p < points; ++p) to[p * width + j] = 0;
      continue;
    }
    const Tap& tap = s.taps[(first + j) % s.taps.size()];
    const T* channel = x + (first + j) / s.taps.size() * s.x.stride[1] + tap.source;
    for (int r = 0; r < number; ++r) {
      Int lo, hi;
      s.taps.inside(runs[r], tap, lo, hi);
      T* at = to + runs[r].column * width + j;
      const T* from = channel + s.taps.origin(runs[r]);
      for (Int p = 0; p < lo; ++p) at[p * width] = 0;
      for (Int p = lo; p < hi; ++p) at[p * width] = from[p * step];
      for (Int p = hi > lo ? hi : lo; p < runs[r].count; ++p) at[p * width] = 0;
    }
  }
}

/// A task owns some columns of one group's weights and goes through all images in order.
template <class T>
void by_tiles(const WeightSum<T>& s) {
  const Kernels<T>& kernel = kernels<T>();
  const int width = kernel.columns;
  const Int points = s.taps.points(), panels = ceil_div(s.columns(), width);
  const DepthBlocks depth(points, kernel.depth);
  const RowTiles tiles(s.rows, kernel.rows);
  Int blocks = ceil_div(panels, 8);
  if (Int wanted = 2 * threads(); s.groups * blocks < wanted) blocks = ceil_div(wanted, s.groups);
  if (blocks > panels) blocks = panels;
  const Int block = ceil_div(panels, blocks), row = block * width;
  parallel_for(s.groups * blocks, 1, [&](Int lo, Int hi) {
    Scratch x_memory(depth.step * row * static_cast<Int>(sizeof(T)));
    Scratch y_memory(depth.step * 16 * static_cast<Int>(sizeof(T)));
    Scratch sum_memory(s.rows * row * static_cast<Int>(sizeof(T)));
    std::vector<Run> runs(static_cast<std::size_t>(depth.step));
    T* const sums = sum_memory.as<T>();
    for (Int task = lo; task < hi; ++task) {
      const Int g = task / blocks, b = task % blocks;
      const Int first_panel = panels * b / blocks, last_panel = panels * (b + 1) / blocks;
      for (Int i = 0; i < s.rows * row; ++i) sums[i] = 0;
      for (Int n = 0; n < s.batch; ++n)
        for (Int d = 0; d < depth.count; ++d) {
          const Int kc = depth.size(d);
          const int number = s.taps.runs(d * depth.step, kc, runs.data());
          for (Int p = first_panel; p < last_panel; ++p) {
            const Int j = p * width, count = s.columns() - j < width ? s.columns() - j : width;
            pack_x(s, s.x.data + n * s.x.stride[0] + g * s.inner * s.x.stride[1], runs.data(), number, kc, j, count,
                   width, x_memory.as<T>() + (p - first_panel) * kc * width);
          }
          for (Int t = 0; t < tiles.count; ++t) {
            const Int i = tiles.begin(t), rows = tiles.begin(t + 1) - i;
            const int height = kernel.height(static_cast<int>(rows));
            pack_y(s, s.y.data + n * s.y.stride[0] + (g * s.rows + i) * s.y.stride[1], runs.data(), number, kc, rows,
                   height, y_memory.as<T>());
            for (Int p = 0; p < last_panel - first_panel; ++p)
              kernel.tile[height](kc, y_memory.as<T>(), x_memory.as<T>() + p * kc * width, width,
                                  sums + i * row + p * width, row, static_cast<int>(rows), true);
          }
        }
      const Int first = first_panel * width;
      const Int last = last_panel * width < s.columns() ? last_panel * width : s.columns();
      for (Int r = 0; r < s.rows; ++r)
        for (Int j = first; j < last; ++j) s.at(g, r, j) = sums[r * row + j - first];
    }
  });
}

/// Few channels to a group: each weight is a sum of inner products of rows.
template <class T>
void by_rows(const WeightSum<T>& s) {
  const Kernels<T>& kernel = kernels<T>();
  const Int(&grid)[3] = s.taps.grid();
  const Int step = s.taps.step(), lines = grid[0] * grid[1];
  parallel_for(s.groups * s.rows, 1, [&](Int lo, Int hi) {
    for (Int task = lo; task < hi; ++task) {
      const Int g = task / s.rows, r = task % s.rows;
      for (Int j = 0; j < s.columns(); ++j) {
        const Tap& tap = s.taps[j % s.taps.size()];
        T total = 0;
        for (Int n = 0; n < s.batch; ++n) {
          const T* x = s.x.data + n * s.x.stride[0] + (g * s.inner + j / s.taps.size()) * s.x.stride[1] + tap.source;
          const T* y = s.y.data + n * s.y.stride[0] + task * s.y.stride[1];
          T image = 0;
          for (Int line = 0; line < lines; ++line) {
            const Run run{0, grid[2], line / grid[1], line % grid[1], 0};
            Int first, last;
            s.taps.inside(run, tap, first, last);
            if (first >= last) continue;
            const T* from = x + s.taps.origin(run) + first * step;
            const T* by = y + s.y_at(run) + first * s.y.stride[4];
            T sum = 0;
            if (step == 1 && s.y.stride[4] == 1) sum = kernel.dot(last - first, from, by);
            else
              for (Int p = 0; p < last - first; ++p) sum += from[p * step] * by[p * s.y.stride[4]];
            image += sum;
          }
          total += image;
        }
        s.at(g, r, j) = total;
      }
    }
  });
}

}  // namespace

template <class T>
void convolution_weight_gradient(const ConvShape& shape, Volume<const T> input, Volume<const T> output_gradient,
                                 Volume<T> weight_gradient) {
  const ConvShape c = shape.transposed ? untransposed(shape) : shape;
  const Axis axes[3] = {forward_axis(c, 0), forward_axis(c, 1), forward_axis(c, 2)};
  const Volume<const T> x = shape.transposed ? output_gradient : input;
  const Volume<const T> y = shape.transposed ? input : output_gradient;
  const Taps taps(axes, x.stride + 2, weight_gradient.stride + 2);
  const WeightSum<T> s{c.batch, c.groups,       c.out_channels / c.groups, c.in_channels / c.groups, taps, x,
                       y,       weight_gradient};
  if (s.groups * s.rows * s.columns() == 0) return;
  if (s.rows * s.inner <= 4 || s.batch == 0 || taps.points() <= 0) by_rows(s);
  else by_tiles(s);
}

template void convolution_weight_gradient<float>(const ConvShape&, Volume<const float>, Volume<const float>,
                                                 Volume<float>);
template void convolution_weight_gradient<double>(const ConvShape&, Volume<const double>, Volume<const double>,
                                                  Volume<double>);

}  // namespace tenon::templates

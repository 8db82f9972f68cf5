#include "tenon/templates/gemm.h"

#include <utility>

#include "tenon/templates/kernels.h"
#include "tenon/templates/pack.h"
#include "tenon/templates/parallel.h"

namespace tenon::templates {
namespace {

using Int = std::int64_t;

constexpr Int packed_bytes = Int{16} << 20;  // of b at one time
constexpr Int serial_work = Int{1} << 15;    // multiply-adds below which another thread does not pay

template <class T>
Int product_size(const GemmArgs<T>& g) {
  return g.m * g.n * g.k;
}

/// c = alpha * sum (+ beta * c) (+ bias) on the first block of k, c += alpha * sum on the others.
template <class T>
struct Finish {
  const GemmArgs<T>& g;
  bool first;

  /// The tile may write c itself; where there is a bias, onto a c that start() has filled with it.
  bool direct() const {
    return g.c_col == 1 && g.alpha == T(1) && (g.beta == T(0) || (g.beta == T(1) && g.bias == nullptr));
  }
  void start(T* c, const T* bias, Int rows, Int columns) const {
    for (Int i = 0; i < rows; ++i)
      for (Int j = 0; j < columns; ++j) c[i * g.c_row + j] = g.bias_scale * bias[i * g.bias_row + j * g.bias_col];
  }
  void operator()(const T* sums, Int sums_row, T* c, const T* bias, Int rows, Int columns) const {
    for (Int i = 0; i < rows; ++i) {
      const T* from = sums + i * sums_row;
      T* to = c + i * g.c_row;
      for (Int j = 0; j < columns; ++j) {
        T value = g.alpha == T(1) ? from[j] : g.alpha * from[j];
        if (!first) value += to[j * g.c_col];
        else if (g.beta != T(0)) value += g.beta * to[j * g.c_col];
        if (first && bias != nullptr) value += g.bias_scale * bias[i * g.bias_row + j * g.bias_col];
        to[j * g.c_col] = value;
      }
    }
  }
};

/// One matrix. Scratch for b is filled by all threads, then tasks of rows x columns run on their own.
template <class T>
void multiply(const GemmArgs<T>& g, Int index) {
  const Kernels<T>& kernel = kernels<T>();
  const T* a = g.a + index * g.a_batch;
  const T* b = g.b + index * g.b_batch;
  T* c = g.c + index * g.c_batch;
  const T* bias = g.bias == nullptr ? nullptr : g.bias + index * g.bias_batch;
  const int width = kernel.columns;
  const DepthBlocks depth(g.k, kernel.depth);

  // Few rows read each value of b once or twice: packing it would cost more than it saves.
  const bool in_place = g.b_col == 1 && g.m <= kernel.rows;
  Int chunk = packed_bytes / (g.k * static_cast<Int>(sizeof(T)) * width) * width;
  if (chunk < 4 * width) chunk = 4 * width;
  if (in_place || chunk > g.n) chunk = g.n;
  Scratch packed(in_place ? 0 : g.k * ceil_div(chunk, width) * width * static_cast<Int>(sizeof(T)));

  for (Int n0 = 0; n0 < g.n; n0 += chunk) {
    const Int columns = g.n - n0 < chunk ? g.n - n0 : chunk;
    const Int panels = ceil_div(columns, width);
    T* const right = packed.as<T>();  // [depth block][panel][k][width]
    if (!in_place)
      parallel_for(panels, ceil_div(serial_work, g.k * width), [&](Int lo, Int hi) {
        for (Int p = lo; p < hi; ++p)
          for (Int d = 0; d < depth.count; ++d) {
            Int j = p * width, count = columns - j < width ? columns - j : width;
            pack_columns(b + d * depth.step * g.b_row + (n0 + j) * g.b_col, g.b_row, g.b_col, count, depth.size(d),
                         width, right + (d * depth.step * panels + p * depth.size(d)) * width);
          }
      });

    // Blocks of rows whose packed a stays in the second cache; columns are split too where rows alone are too few.
    const Int block = 8 * kernel.rows;
    const RowTiles row_blocks(g.m, static_cast<int>(block));
    Int column_blocks = 1;
    if (Int want = 4 * threads(); row_blocks.count < want) column_blocks = ceil_div(want, row_blocks.count);
    if (column_blocks > panels) column_blocks = panels;
    const Int work = g.k * ceil_div(g.m, row_blocks.count) * ceil_div(columns, column_blocks);
    parallel_for(row_blocks.count * column_blocks, ceil_div(serial_work, work), [&](Int lo, Int hi) {
      Scratch left_memory(depth.step * (block + 16) * 2 * static_cast<Int>(sizeof(T)));
      T* const left = left_memory.as<T>();
      T sums[16 * 64];
      for (Int task = lo; task < hi; ++task) {
        const Int rb = task / column_blocks, cb = task % column_blocks;
        const Int m0 = row_blocks.begin(rb), m1 = row_blocks.begin(rb + 1);
        const Int first_panel = panels * cb / column_blocks, last_panel = panels * (cb + 1) / column_blocks;
        const RowTiles tiles(m1 - m0, kernel.rows);
        for (Int d = 0; d < depth.count; ++d) {
          const Int k0 = d * depth.step, kc = depth.size(d);
          const Finish<T> finish{g, d == 0};
          T* to = left;
          for (Int t = 0; t < tiles.count; ++t) {
            const Int i = tiles.begin(t), rows = tiles.begin(t + 1) - i;
            const int height = kernel.height(static_cast<int>(rows));
            pack_rows(a + (m0 + i) * g.a_row + k0 * g.a_col, g.a_row, g.a_col, rows, kc, height, to);
            to += kc * height;
          }
          for (Int p = first_panel; p < last_panel; ++p) {
            const Int j = p * width, count = columns - j < width ? columns - j : width;
            const bool narrow = 2 * count <= width;
            const Int computed = narrow ? width / 2 : width;
            const T* panel = right + (k0 * panels + p * kc) * width;
            Int panel_row = width;
            if (in_place && count == computed) {
              panel = b + k0 * g.b_row + n0 + j;
              panel_row = g.b_row;
            } else if (in_place) {  // the last columns: no reading past the end of b
              T* edge = left + depth.step * (block + 16);
              pack_columns(b + k0 * g.b_row + n0 + j, g.b_row, Int{1}, count, kc, width, edge);
              panel = edge;
            }
            const T* from = left;
            for (Int t = 0; t < tiles.count; ++t) {
              const Int i = tiles.begin(t), rows = tiles.begin(t + 1) - i;
              const int height = kernel.height(static_cast<int>(rows));
              const TileFunction<T> tile = narrow ? kernel.narrow[height] : kernel.tile[height];
              T* const to_c = c + (m0 + i) * g.c_row + (n0 + j) * g.c_col;
              const T* at = bias == nullptr ? nullptr : bias + (m0 + i) * g.bias_row + (n0 + j) * g.bias_col;
              if (count == computed && finish.direct()) {
                if (d == 0 && at != nullptr) finish.start(to_c, at, rows, count);
                tile(kc, from, panel, panel_row, to_c, g.c_row, static_cast<int>(rows),
                     d != 0 || at != nullptr || g.beta == T(1));
              } else {
                tile(kc, from, panel, panel_row, sums, computed, static_cast<int>(rows), false);
                finish(sums, computed, to_c, at, rows, count);
              }
              from += kc * height;
            }
          }
        }
      }
    });
  }
}

/// One row of a (or a few) against columns of b that are contiguous along k: inner products, each column on its own.
template <class T>
void inner_products(const GemmArgs<T>& g, Int index) {
  const Kernels<T>& kernel = kernels<T>();
  const T* bias = g.bias == nullptr ? nullptr : g.bias + index * g.bias_batch;
  const T* a = g.a + index * g.a_batch;
  Scratch row_memory(g.a_col == 1 ? 0 : g.m * g.k * static_cast<Int>(sizeof(T)));
  Int a_row = g.a_row;
  if (g.a_col != 1) {
    T* to = row_memory.as<T>();
    for (Int i = 0; i < g.m; ++i)
      for (Int p = 0; p < g.k; ++p) to[i * g.k + p] = a[i * g.a_row + p * g.a_col];
    a = to;
    a_row = g.k;
  }
  const Finish<T> finish{g, true};
  parallel_for(g.n, ceil_div(serial_work, g.m * g.k), [&](Int lo, Int hi) {
    for (Int j = lo; j < hi; ++j)
      for (Int i = 0; i < g.m; ++i) {
        T sum = kernel.dot(g.k, a + i * a_row, g.b + index * g.b_batch + j * g.b_col);
        finish(&sum, 1, g.c + index * g.c_batch + i * g.c_row + j * g.c_col,
               bias == nullptr ? nullptr : bias + i * g.bias_row + j * g.bias_col, 1, 1);
      }
  });
}

/// One row against a b whose rows are contiguous: long stretches of them at a time, so that memory is read in order.
template <class T>
void row_times_matrix(const GemmArgs<T>& g, Int index) {
  const Kernels<T>& kernel = kernels<T>();
  const int width = 4 * kernel.columns;
  const T* bias = g.bias == nullptr ? nullptr : g.bias + index * g.bias_batch;
  const DepthBlocks depth(g.k, 4 * kernel.depth);
  Scratch row_memory(g.k * static_cast<Int>(sizeof(T)));
  T* const row = row_memory.as<T>();
  for (Int p = 0; p < g.k; ++p) row[p] = g.a[index * g.a_batch + p * g.a_col];
  const Finish<T> finish{g, true};
  parallel_for(ceil_div(g.n, width), ceil_div(serial_work, width * g.k), [&](Int lo, Int hi) {
    T sums[4 * 64];
    for (Int q = lo; q < hi; ++q) {
      const Int j0 = q * width, count = g.n - j0 < width ? g.n - j0 : width;
      const T* b = g.b + index * g.b_batch + j0;
      for (Int d = 0; d < depth.count; ++d, b += depth.step * g.b_row) {
        const T* left = row + d * depth.step;
        Int j = 0;
        if (count == width) {
          kernel.row(depth.size(d), left, b, g.b_row, sums, width, 1, d != 0);
          j = width;
        }
        const int half = kernel.columns / 2;
        for (; j + half <= count; j += half)
          kernel.narrow[1](depth.size(d), left, b + j, g.b_row, sums + j, half, 1, d != 0);
        for (; j < count; ++j) {
          T sum = 0;
          for (Int p = 0; p < depth.size(d); ++p) sum += left[p] * b[p * g.b_row + j];
          sums[j] = d == 0 ? sum : sums[j] + sum;
        }
      }
      finish(sums, width, g.c + index * g.c_batch + j0 * g.c_col, bias == nullptr ? nullptr : bias + j0 * g.bias_col, 1,
             count);
    }
  });
}

template <class T>
void one_matrix(const GemmArgs<T>& g, Int index) {
  if (g.m <= 8 && g.b_row == 1 && g.k > 1 && g.k >= 2 * g.m) return inner_products(g, index);
  if (g.m == 1 && g.b_col == 1) return row_times_matrix(g, index);
  multiply(g, index);
}

template <class T>
void transpose(GemmArgs<T>& g) {
  std::swap(g.m, g.n);
  std::swap(g.a, g.b);
  std::swap(g.a_batch, g.b_batch);
  std::swap(g.a_row, g.b_col);
  std::swap(g.a_col, g.b_row);
  std::swap(g.c_row, g.c_col);
  std::swap(g.bias_row, g.bias_col);
}

template <class T>
void scale_only(const GemmArgs<T>& g) {
  for (Int q = 0; q < g.batch; ++q)
    for (Int i = 0; i < g.m; ++i)
      for (Int j = 0; j < g.n; ++j) {
        T& c = g.c[q * g.c_batch + i * g.c_row + j * g.c_col];
        T value = g.beta == T(0) ? T(0) : g.beta * c;
        if (g.bias != nullptr) value += g.bias_scale * g.bias[q * g.bias_batch + i * g.bias_row + j * g.bias_col];
        c = value;
      }
}

}  // namespace

template <class T>
void gemm(const GemmArgs<T>& args) {
  GemmArgs<T> g = args;
  if (g.batch <= 0 || g.m <= 0 || g.n <= 0) return;
  if (g.k <= 0) return scale_only(g);
  // A stride over one element says nothing; made plain, it cannot hide a contiguous operand.
  if (g.k == 1) g.a_col = g.b_row = 1;
  if (g.n == 1) g.b_col = g.c_col = 1;
  if (g.m == 1) g.a_row = g.c_row = 1;
  // Matrices that share b and follow each other are one tall matrix.
  if (g.batch > 1 && g.b_batch == 0 && g.a_batch == g.m * g.a_row && g.c_batch == g.m * g.c_row &&
      (g.bias == nullptr || g.bias_batch == g.m * g.bias_row)) {
    g.m *= g.batch;
    g.batch = 1;
  }
  // The tile wants its columns along c's contiguous dimension, and a thin side as rows.
  const bool rows_contiguous = g.c_row == 1 && g.c_col != 1;
  if ((g.n <= 8 && g.m > g.n) || (rows_contiguous && g.m > 8)) transpose(g);
  if (g.batch == 1) return one_matrix(g, 0);
  // One matrix after another uses all threads on each; many small ones are spread instead.
  if (g.batch < threads() && product_size(g) > 64 * serial_work) {
    for (Int i = 0; i < g.batch; ++i) one_matrix(g, i);
    return;
  }
  parallel_for(g.batch, ceil_div(serial_work, product_size(g)), [&](Int lo, Int hi) {
    for (Int i = lo; i < hi; ++i) one_matrix(g, i);
  });
}

template void gemm<float>(const GemmArgs<float>&);
template void gemm<double>(const GemmArgs<double>&);

template <>
void gemm<Int>(const GemmArgs<Int>& g) {
  using Wide = std::uint64_t;  // wraps around without being undefined
  if (g.batch <= 0 || g.m <= 0 || g.n <= 0) return;
  parallel_for(g.batch * g.m, ceil_div(serial_work, g.n * (g.k + 1)), [&](Int lo, Int hi) {
    for (Int row = lo; row < hi; ++row) {
      const Int q = row / g.m, i = row % g.m;
      for (Int j = 0; j < g.n; ++j) {
        Wide sum = 0;
        const Int* a = g.k > 0 ? g.a + q * g.a_batch + i * g.a_row : nullptr;
        const Int* b = g.k > 0 ? g.b + q * g.b_batch + j * g.b_col : nullptr;
        for (Int p = 0; p < g.k; ++p) sum += static_cast<Wide>(a[p * g.a_col]) * static_cast<Wide>(b[p * g.b_row]);
        sum *= static_cast<Wide>(g.alpha);
        Int& c = g.c[q * g.c_batch + i * g.c_row + j * g.c_col];
        if (g.beta != 0) sum += static_cast<Wide>(g.beta) * static_cast<Wide>(c);
        if (g.bias != nullptr)
          sum += static_cast<Wide>(g.bias_scale) *
                 static_cast<Wide>(g.bias[q * g.bias_batch + i * g.bias_row + j * g.bias_col]);
        c = static_cast<Int>(sum);
      }
    }
  });
}

}  // namespace tenon::templates

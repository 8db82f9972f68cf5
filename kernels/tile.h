// The innermost loop of gemm and convolution: a few rows times a few vectors of columns, all sums in registers. The
// left side is read in place, each row by its pointer; the right side lies in panels of 16 columns, of the same numbers
// or of W, half as wide, that become T in registers.
#pragma once
#include "kernels/half.h"

namespace tenon::kernels {

constexpr int panel_width = 16, tile_rows = 8;

/// Consecutive terms of the sums: where they begin behind a row's pointer, in bytes, and how many they are.
struct Segment {
  int64_t offset, length;
};

template <class T>
struct Tile {
  const T* const* row;
  int64_t step;  // of the left side from one term to the next, in bytes
  const Segment* segments;
  int64_t segment_count;
  const char* right;
  int64_t right_step, panel_step;  // from term to term, from panel to panel, in bytes
  const char* ahead;               // a panel that a later tile reads; it is fetched beside the products
  int64_t columns;                 // that there are; the last vector may reach beyond them
  T* const* out;                   // rows; the tile begins at `column` of each
  const T* const* residual;
  int64_t column;
  const T* bias;  // null: none
  T alpha, beta;
  bool far;          // the right side comes from beyond the caches of a core
  bool first, last;  // of the chunks of a sum: the first does not read `out`, the last one ends with the epilogue
  bool has_residual, relu;
};

/// Sums of a tile that reaches beyond the last column: the same operations on the columns that there are.
template <class T>
__attribute__((noinline)) void finish_columns(const Tile<T>& t, const Vector<T>* sums, int rows, int vectors) {
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j * lanes<T> < t.columns; ++j) {
      const int64_t at = j * lanes<T>, rest = t.columns - at, n = rest < lanes<T> ? rest : lanes<T>;
      T* const out = t.out[i] + t.column + at;
      Vector<T> sum = sums[i * vectors + j];
      if (!t.first) sum = load_first(out, n) + sum;
      if (t.last) {
        if (t.alpha != 1) sum = sum * t.alpha;
        if (t.beta != 0) sum = sum + load_first(out, n) * t.beta;
        if (t.bias != nullptr) sum = sum + load_first(t.bias + at, n);
        if (t.has_residual) sum = sum + load_first(t.residual[i] + t.column + at, n);
        if (t.relu) sum = relu(sum);
      }
      store_first(out, sum, n);
    }
}

constexpr int64_t fetched_ahead = 2048;  // bytes of each panel
constexpr int cache_line = 64;

template <class T, class W, int rows, int vectors, bool fetches = false>
__attribute__((noinline)) void tile(const Tile<T>& t) {
  constexpr int per_panel = panel_width / lanes<T>;
  Vector<T> sum[rows][vectors];
  const char* row[rows];
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
    row[i] = reinterpret_cast<const char*>(t.row[i]);
    const T* out = t.out[i] + t.column;
    asm("" : "+r"(out));
#pragma GCC unroll 8
    for (int j = 0; j < vectors; ++j) {
      __builtin_prefetch(out + j * lanes<T>, 1, 3);
      sum[i][j] = Vector<T>{};
    }
  }
  constexpr bool fetches_later = rows >= 4 && vectors >= 2;
  const char *right = t.right, *ahead = t.ahead;
  const int64_t step = t.step, right_step = t.right_step, panel_step = t.panel_step;
  int64_t offset = 0, three_panels = 3 * panel_step;
  asm("" : "+r"(three_panels));  // panels are addressed by few registers, not by a pointer each
  auto term = [&]() __attribute__((always_inline)) {
    const char* far = right + 4 * panel_step;
    asm("" : "+r"(far));
    auto panel = [&](const char* near, const char* beyond, int j) __attribute__((always_inline)) {
      const int p = j / per_panel;
      return (p < 4 ? near : beyond) + (p % 4 == 3 ? three_panels : p % 4 * panel_step);
    };
    auto right_vector = [&](int j) __attribute__((always_inline)) {
      return load_columns<T, W>(panel(right, far, j), j % per_panel);
    };
    if constexpr (fetches) {
      const char *near_ahead = right + fetched_ahead, *far_ahead = far + fetched_ahead;
      asm("" : "+r"(near_ahead), "+r"(far_ahead));
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j)
        __builtin_prefetch(panel(near_ahead, far_ahead, j) + j % per_panel * lanes<T> * static_cast<int>(sizeof(W)), 0,
                           0);
    }
    if constexpr (fetches_later) {
      for (int i = 0; i < panel_width * static_cast<int>(sizeof(W)); i += cache_line)
        __builtin_prefetch(ahead + i, 0, 2);
      ahead += right_step;
      asm("" : "+r"(ahead));
    }
    if constexpr (rows == 1) {
      const Vector<T> a = broadcast_from(reinterpret_cast<const T*>(row[0] + offset));
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) sum[0][j] = fma(a, right_vector(j), sum[0][j]);
    } else {
      Vector<T> b[vectors];
#pragma GCC unroll 8
      for (int j = 0; j < vectors; ++j) {
        b[j] = right_vector(j);
        keep(b[j]);
      }
#pragma GCC unroll 8
      for (int i = 0; i < rows; ++i) {
        const Vector<T> a = broadcast_from(reinterpret_cast<const T*>(row[i] + offset));
#pragma GCC unroll 8
        for (int j = 0; j < vectors; ++j) sum[i][j] = fma(a, b[j], sum[i][j]);
      }
    }
    offset += step;
    right += right_step;
    asm("" : "+r"(offset));  // one running offset for all rows, not a pointer each
    asm("" : "+r"(right));   // and one for the right side: unrolled terms would have a pointer each
  };
  for (int64_t s = 0; s < t.segment_count; ++s) {
    offset = t.segments[s].offset;
    int64_t n = t.segments[s].length;
    for (; n >= 4; n -= 4) {
      term();
      term();
      term();
      term();
    }
    for (; n > 0; --n) term();
  }

  // Where results go is looked up again here: their addresses, kept since they were fetched, would take all registers.
  const Tile<T>* self = &t;
  asm("" : "+r"(self));
  const int64_t column = self->column;
  T* out[rows];
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) out[i] = self->out[i] + column;
#define TENON_EACH(statement)                                                                                      \
  _Pragma("GCC unroll 8") for (int i = 0; i < rows; ++i) _Pragma("GCC unroll 8") for (int j = 0; j < vectors; ++j) \
      statement
  // The last vector may reach beyond the columns that there are.
  auto finish = [&]<bool partial>(int64_t rest) __attribute__((always_inline)) {
    auto read = [&](const T* from, int j) __attribute__((always_inline)) {
      return partial && j + 1 == vectors ? load_first(from + j * lanes<T>, rest) : load<T>(from + j * lanes<T>);
    };
    if (!t.first) TENON_EACH(sum[i][j] = read(out[i], j) + sum[i][j];)
    if (t.last) {
      if (t.alpha != 1) TENON_EACH(sum[i][j] = sum[i][j] * t.alpha;)
      if (t.beta != 0) TENON_EACH(sum[i][j] = sum[i][j] + read(out[i], j) * t.beta;)
      if (t.bias != nullptr) TENON_EACH(sum[i][j] = sum[i][j] + read(t.bias, j);)
      if (t.has_residual) TENON_EACH(sum[i][j] = sum[i][j] + read(t.residual[i] + column, j);)
      if (t.relu) TENON_EACH(sum[i][j] = relu(sum[i][j]);)
    }
    TENON_EACH(if (partial && j + 1 == vectors) store_first(out[i] + j * lanes<T>, sum[i][j], rest);
               else store(out[i] + j * lanes<T>, sum[i][j]);)
  };
  if (t.columns == vectors * lanes<T>) return finish.template operator()<false>(lanes<T>);
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) return finish.template operator()<true>(t.columns - (vectors - 1) * lanes<T>);
#endif
  Vector<T> kept[rows * vectors];
  TENON_EACH(kept[i * vectors + j] = sum[i][j];)
  return finish_columns(t, kept, rows, vectors);
#undef TENON_EACH
}

/// Widths, in vectors, that a tile comes in on this target, and how many rows fit into the registers beside them.
template <class T>
struct TileShapes {
  static constexpr bool wide = vector_registers == 32, one_to_a_panel = lanes<T> == panel_width;
  static constexpr int rows(int vectors) { return vectors == 8 ? 1 : !wide ? 6 : vectors == 4 ? 6 : 8; }
  /// The next tile's width where `rest` of `all` vectors are left to do for `m` rows.
  static int width(int64_t all, int64_t rest, int64_t m) {
    if (m == 1 && rest >= 8) return 8;
    if constexpr (!wide) return rest >= 2 ? 2 : 1;
    else if constexpr (!one_to_a_panel) return rest >= 4 ? 4 : static_cast<int>(rest);
    else {
      if ((all % 3 == 0 && rest >= 3) || rest == 5) return 3;
      return rest >= 4 ? 4 : static_cast<int>(rest);
    }
  }
};

template <class T, class W, int vectors>
void run_tile_of(int rows, const Tile<T>& t) {
  constexpr int most = TileShapes<T>::rows(vectors);
  switch (rows) {
    case 1:
      if constexpr (vectors >= 4)
        if (t.far) return tile<T, W, 1, vectors, true>(t);
      return tile<T, W, 1, vectors>(t);
    case 2:
      if constexpr (most >= 2) return tile<T, W, 2, vectors>(t);
      break;
    case 3:
      if constexpr (most >= 3) return tile<T, W, 3, vectors>(t);
      break;
    case 4:
      if constexpr (most >= 4) return tile<T, W, 4, vectors>(t);
      break;
    case 5:
      if constexpr (most >= 5) return tile<T, W, 5, vectors>(t);
      break;
    case 6:
      if constexpr (most >= 6) return tile<T, W, 6, vectors>(t);
      break;
    case 7:
      if constexpr (most >= 7) return tile<T, W, 7, vectors>(t);
      break;
    case 8:
      if constexpr (most >= 8) return tile<T, W, 8, vectors>(t);
      break;
  }
}

template <class T, class W>
void run_tile(int rows, int vectors, const Tile<T>& t) {
  switch (vectors) {
    case 1:
      if constexpr (TileShapes<T>::one_to_a_panel) run_tile_of<T, W, 1>(rows, t);
      return;
    case 2: return run_tile_of<T, W, 2>(rows, t);
    case 3:
      if constexpr (TileShapes<T>::wide && TileShapes<T>::one_to_a_panel) run_tile_of<T, W, 3>(rows, t);
      return;
    case 4:
      if constexpr (TileShapes<T>::wide) run_tile_of<T, W, 4>(rows, t);
      return;
    case 8: return run_tile_of<T, W, 8>(1, t);
  }
}

}  // namespace tenon::kernels

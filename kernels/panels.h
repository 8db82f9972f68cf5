// The right side of a product in panels of 16 columns: [panel][k][16], the last one filled up with zeros.
#pragma once
#include "kernels/tile.h"

namespace tenon::kernels {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }  // a >= 0

/// to[j * to_step + i] = from[i * from_step + j] for i, j < 4.
TENON_INLINE void transpose_4x4(const float* from, int64_t from_step, float* to, int64_t to_step) {
  typedef float V __attribute__((vector_size(16)));
  typedef float Free __attribute__((vector_size(16), aligned(4), may_alias));
  auto at = [&](int64_t j) { return V(*reinterpret_cast<const Free*>(from + j * from_step)); };
  const V a = at(0), b = at(1), c = at(2), d = at(3);
  const V ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const V ef = __builtin_shufflevector(a, b, 2, 6, 3, 7), gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  auto put = [&](int64_t p, V v) { *reinterpret_cast<Free*>(to + p * to_step) = v; };
  put(0, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
  put(1, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  put(2, __builtin_shufflevector(ef, gh, 0, 1, 4, 5));
  put(3, __builtin_shufflevector(ef, gh, 2, 3, 6, 7));
}

/// One panel: `columns` (at most 16) columns of k terms. Strides in elements.
template <class To, class From>
void pack_panel(const From* from, int64_t row, int64_t column, int64_t columns, int64_t k, To* to) {
  if (columns == panel_width && column == 1) {
    for (int64_t p = 0; p < k; ++p, from += row, to += panel_width)
      for (int j = 0; j < panel_width; ++j) to[slot_of<To>(j)] = convert<To>(from[j]);
    return;
  }
  if constexpr (sizeof(To) == 4 && sizeof(From) == 4)
    if (columns == panel_width && row == 1) {
      int64_t p = 0;
      for (; p + 4 <= k; p += 4)
        for (int j = 0; j < panel_width; j += 4)
          transpose_4x4(from + p + j * column, column, to + p * panel_width + j, panel_width);
      from += p;
      to += p * panel_width;
      k -= p;
    }
  for (int64_t first = 0; first < k; first += 16) {  // in blocks, so that both sides stay in the first cache
    const int64_t last = first + 16 < k ? first + 16 : k;
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t p = first; p < last; ++p)
        to[p * panel_width + slot_of<To>(j)] = convert<To>(from[p * row + j * column]);
    for (int64_t j = columns; j < panel_width; ++j)
      for (int64_t p = first; p < last; ++p) to[p * panel_width + slot_of<To>(j)] = To{};
  }
}

/// `count` whole panels, `panel_step` elements apart, of rows that lie `row` apart and have their columns side by side:
/// of each row all that is wanted is read at once, since rows may lie a page apart.
template <class To, class From>
void pack_panels(const From* from, int64_t row, int64_t count, int64_t k, To* to, int64_t panel_step) {
  for (int64_t p = 0; p < k; ++p, from += row, to += panel_width)
    for (int64_t i = 0; i < count; ++i)
      for (int j = 0; j < panel_width; ++j)
        to[i * panel_step + slot_of<To>(j)] = convert<To>(from[i * panel_width + j]);
}

}  // namespace tenon::kernels

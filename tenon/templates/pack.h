#pragma once
#include <cstdint>

#include "tenon/templates/kernels.h"

namespace tenon::templates {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0); }

/// k in blocks of nearly equal length, at most the tile's depth.
struct DepthBlocks {
  std::int64_t k, count, step;
  DepthBlocks(std::int64_t k, std::int64_t depth)
      : k(k), count(k == 0 ? 0 : ceil_div(k, depth)), step(k == 0 ? 0 : ceil_div(k, count)) {}
  std::int64_t size(std::int64_t i) const { return i + 1 < count ? step : k - i * step; }
};

/// Rows in tiles of nearly equal height: a last tile of one row would cost as much as a full one.
struct RowTiles {
  std::int64_t rows, count;
  RowTiles(std::int64_t rows, int height) : rows(rows), count(ceil_div(rows, height)) {}
  std::int64_t begin(std::int64_t i) const { return rows * i / count; }
};

/// A panel [k][height] from `rows` rows of a strided matrix, zeros below them.
template <class T>
void pack_rows(const T* a, std::int64_t row, std::int64_t col, std::int64_t rows, std::int64_t k, int height, T* to) {
  if (row == 1) {
    for (std::int64_t p = 0; p < k; ++p, to += height, a += col) {
      for (std::int64_t i = 0; i < rows; ++i) to[i] = a[i];
      for (std::int64_t i = rows; i < height; ++i) to[i] = 0;
    }
    return;
  }
  for (std::int64_t i = 0; i < rows; ++i) {
    const T* from = a + i * row;
    if (col == 1)
      for (std::int64_t p = 0; p < k; ++p) to[p * height + i] = from[p];
    else
      for (std::int64_t p = 0; p < k; ++p) to[p * height + i] = from[p * col];
  }
  for (std::int64_t i = rows; i < height; ++i)
    for (std::int64_t p = 0; p < k; ++p) to[p * height + i] = 0;
}

/// A panel [k][width] from `columns` columns, zeros to their right.
template <class T>
void pack_columns(const T* b, std::int64_t row, std::int64_t col, std::int64_t columns, std::int64_t k, int width,
                  T* to) {
  if (col == 1 && columns == width) {
    for (std::int64_t p = 0; p < k; ++p, to += width, b += row)
      __builtin_memcpy(to, b, sizeof(T) * static_cast<std::size_t>(width));
    return;
  }
  if (col == 1 || row != 1) {
    for (std::int64_t p = 0; p < k; ++p, to += width, b += row) {
      for (std::int64_t j = 0; j < columns; ++j) to[j] = b[j * col];
      for (std::int64_t j = columns; j < width; ++j) to[j] = 0;
    }
    return;
  }
  for (std::int64_t first = 0; first < k; first += 16) {  // in blocks, so that both sides stay in the first cache
    std::int64_t last = first + 16 < k ? first + 16 : k;
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t p = first; p < last; ++p) to[p * width + j] = b[j * col + p];
    for (std::int64_t j = columns; j < width; ++j)
      for (std::int64_t p = first; p < last; ++p) to[p * width + j] = 0;
  }
}

}  // namespace tenon::templates

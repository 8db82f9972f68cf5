// A block of a product: at most 56 rows and 192 columns, all terms of their sums. What gemm, convolution and the
// gradients of weights have in common; they differ in where rows lie and how terms follow one another.
#pragma once
#include "kernels/gemm.h"
#include "kernels/panels.h"

namespace tenon::kernels {

constexpr int64_t block_rows = gemm_block_rows, block_columns = gemm_block_columns;
constexpr int64_t chunk_terms = 768, chunk_segments = 64;

/// Rows of block `i` of `count` blocks: nearly equal, in whole tiles where blocks are many.
struct RowBlocks {
  int64_t rows, count, size;
  explicit RowBlocks(int64_t rows)
      : rows(rows), count(gemm_row_blocks(rows)), size(count == 0 ? 8 : ceil_div(rows, count)) {
    if (count > 8) size = ceil_div(size, 8) * 8;
  }
  int64_t begin(int64_t i) const { return i * size < rows ? i * size : rows; }
};

/// Blocks of a result in the order of iterations, of which the first of two threads takes the first half: blocks of its
/// own rows where the right side is smaller than the rest, so that a thread reads what it has written in the step
/// before; else of its own columns, so that it reads half of the right side.
class BlockOrder {
 public:
  /// For a product of rows x inner by terms x columns; the left side's rows may be read several times, as by taps.
  BlockOrder(int64_t row_blocks, int64_t column_blocks, int64_t rows, int64_t inner, int64_t terms, int64_t columns)
      : count_(row_blocks * column_blocks), columns_(column_blocks), part_(row_blocks) {
    if (row_blocks % 2 == 0 && terms * columns <= rows * (inner + columns)) part_ /= 2;
  }
  int64_t count() const { return count_; }
  int64_t together() const { return part_; }  // blocks of rows that follow one another with the same columns
  struct Place {
    int64_t row, column;
  };
  Place at(int64_t i) const {
    const int64_t runs = i / part_, parts = runs / columns_;
    return {parts * part_ + i - runs * part_, runs - parts * columns_};
  }

 private:
  int64_t count_, columns_, part_;  // part: blocks of rows that all columns are computed of before the next
};

/// The terms of a sum on the left side: four nested loops around `length` terms, `step` elements apart. On the right
/// side they follow one another.
struct Terms {
  int64_t extent[4] = {1, 1, 1, 1}, stride[4] = {0, 0, 0, 0};
  int64_t length = 0, step = 1;
};

/// Cuts a sum into chunks of at most 768 terms, nearly equal, the same on every target: each is summed from zero in
/// registers, then added to those before it.
class Chunks {
 public:
  Chunks(const Terms& terms, int64_t element_size) : terms_(terms), size_(element_size) {
    const int64_t(&e)[4] = terms.extent;
    const bool one = (e[0] | e[1] | e[2] | e[3]) == 1 && (e[0] & e[1] & e[2] & e[3]) == 1;
    if (one && terms.length > 0 && terms.length <= chunk_terms) {  // mostly, and divisions take time
      parts_ = pieces_ = 1;
      part_length_ = terms.length;
      return;
    }
    parts_ = terms.length > chunk_terms ? ceil_div(terms.length, chunk_terms) : 1;
    part_length_ = ceil_div(terms.length, parts_);
    pieces_ = parts_;
    for (int64_t e : terms.extent) pieces_ *= e;
    if (terms.length == 0) pieces_ = 0;
    if (pieces_ == 0) return;
    per_chunk_ = chunk_terms / part_length_;
    if (per_chunk_ > chunk_segments) per_chunk_ = chunk_segments;
    count_ = ceil_div(pieces_, per_chunk_);
    per_chunk_ = ceil_div(pieces_, count_);
    count_ = ceil_div(pieces_, per_chunk_);
  }
  /// Every chunk is one segment of this length, but for the last one, which may be shorter. 0: they are not.
  int64_t equal_length() const { return count_ == parts_ && pieces_ == parts_ ? part_length_ : 0; }
  int64_t count() const { return count_; }  // at least 1: no terms at all are one empty chunk
  /// The next chunk: its segments and their number; returns the number of its terms.
  int64_t next(Segment* to, int64_t& number) {
    number = 0;
    int64_t terms = 0;
    for (; number < per_chunk_ && done_ < pieces_; ++number, ++done_) {
      int64_t first = part_ * part_length_, length = terms_.length - first;
      if (length > part_length_) length = part_length_;
      int64_t offset = first * terms_.step;
      for (int d = 0; d < 4; ++d) offset += at_[d] * terms_.stride[d];
      to[number] = {offset * size_, length};
      terms += length;
      if (++part_ < parts_) continue;
      part_ = 0;
      for (int d = 3; d >= 0 && ++at_[d] == terms_.extent[d]; --d) at_[d] = 0;
    }
    return terms;
  }

 private:
  const Terms& terms_;
  int64_t size_, parts_, part_length_, pieces_, per_chunk_ = 1, count_ = 1;
  int64_t done_ = 0, part_ = 0, at_[4] = {0, 0, 0, 0};
};

template <class T>
struct Block {
  int64_t rows = 0, columns = 0;
  const T* left[block_rows];
  T* out[block_rows];
  const T* residual[block_rows];
  int64_t out_step = 1, residual_step = 1;  // from column to column
  Terms terms;
  const void* right = nullptr;
  const void* then = nullptr;   // packed: the right side that comes after this one, to be fetched; none: null
  int64_t turn = 0, turns = 1;  // several blocks in turn have this right side; each fetches a part of what comes then
  bool packed = true;
  int64_t panel_step = 0;                   // packed: from panel to panel, in elements
  int64_t right_row = 0, right_column = 1;  // else: of the matrix
  const T* bias = nullptr;
  int64_t bias_step = 1;
  T alpha = 1, beta = 0;
  bool has_residual = false, relu = false;
  bool far = false;      // the right side comes from beyond the caches of a core
  T* scratch = nullptr;  // block_scratch elements
  // Rows in groups whose elements lie side by side (channels under one tap): the terms of a chunk are first brought
  // together in scratch, so that a tile reads straight on whatever the terms' places. Scratch: gathered_scratch.
  int64_t groups = 0, group_width = 0;  // width: a multiple of 8
  const T* group[block_rows];
  int64_t row_at[block_rows];  // of the group_width * groups elements of a term
};
/// Elements: sums of a block that cannot be stored as they come, and for a right side that is not packed, a few panels.
constexpr int64_t block_scratch = block_rows * block_columns;
constexpr int64_t unpacked_panels = 8, unpacked_scratch = block_scratch + unpacked_panels * panel_width * chunk_terms;
constexpr int64_t most_gathered = 96, gathered_scratch = block_scratch + most_gathered * chunk_terms;

namespace detail {

/// Of sums in scratch, [rows][block_columns], rows [i, i + 4) and columns [j, j + 4): to results whose rows lie side by
/// side. The same operations as one by one.
inline void finish_4x4(const Block<float>& b, int64_t i, int64_t j) {
  typedef float V __attribute__((vector_size(16)));
  typedef float Free __attribute__((vector_size(16), aligned(4), may_alias));
  float turned[16];
  transpose_4x4(b.scratch + i * block_columns + j, block_columns, turned, 4);
  for (int64_t c = 0; c < 4; ++c) {
    V sum = *reinterpret_cast<const Free*>(turned + 4 * c);
    if (b.alpha != 1) sum = sum * b.alpha;
    if (b.bias != nullptr) sum = sum + b.bias[(j + c) * b.bias_step];
    if (b.has_residual) sum = sum + *reinterpret_cast<const Free*>(b.residual[i] + (j + c) * b.residual_step);
    *reinterpret_cast<Free*>(b.out[i] + (j + c) * b.out_step) = b.relu ? relu(sum) : sum;
  }
}
inline bool rows_side_by_side(const Block<float>& b, int64_t i) {
  for (int64_t r = 1; r < 4; ++r)
    if (b.out[i + r] != b.out[i] + r || (b.has_residual && b.residual[i + r] != b.residual[i] + r)) return false;
  return true;
}

/// Sums in scratch to where they belong.
template <class T>
void finish(const Block<T>& b, int64_t first, int64_t last) {
  auto element = [&](int64_t i, int64_t j) __attribute__((always_inline)) {
    T* out = b.out[i] + j * b.out_step;
    T sum = b.scratch[i * block_columns + j];
    if (b.alpha != 1) sum = sum * b.alpha;
    if (b.beta != 0) sum = sum + *out * b.beta;
    if (b.bias != nullptr) sum = sum + b.bias[j * b.bias_step];
    if (b.has_residual) sum = sum + b.residual[i][j * b.residual_step];
    *out = b.relu ? relu(sum) : sum;
  };
  if (b.out_step == 1) {
    for (int64_t i = 0; i < b.rows; ++i)
      for (int64_t j = first; j < last; ++j) element(i, j);
    return;
  }
  // A run of columns at a time, all rows of it: a line that several rows lie in stays in the first cache until it is
  // full, though columns may be a power of two apart.
  constexpr int64_t run = 16;
  for (int64_t begin = first; begin < last; begin += run) {
    const int64_t end = begin + run < last ? begin + run : last;
    for (int64_t i = 0, rows = 0; i < b.rows; i += rows) {
      int64_t j = begin;
      rows = b.rows - i < 4 ? b.rows - i : 4;
      if constexpr (sizeof(T) == 4)
        if (rows == 4 && b.beta == 0 && rows_side_by_side(b, i))
          for (; j + 4 <= end; j += 4) finish_4x4(b, i, j);
      for (; j < end; ++j)
        for (int64_t r = i; r < i + rows; ++r) element(r, j);
    }
  }
}

}  // namespace detail

namespace detail {

/// n chunks of a row's sums side by side: one after the other, each term would wait for the one before.
template <class T, class W, int n>
void sum_chunks(const T* left, int64_t step, const W* right, int part, int64_t length, int64_t last_length,
                Vector<T>* sums) {
  Vector<T> sum[n];
#pragma GCC unroll 8
  for (int c = 0; c < n; ++c) sum[c] = Vector<T>{};
  for (int64_t k = 0; k < last_length; ++k)
#pragma GCC unroll 8
    for (int c = 0; c < n; ++c)
      sum[c] = fma(broadcast_from(left + (c * length + k) * step),
                   load_columns<T, W>(right + (c * length + k) * panel_width, part), sum[c]);
#pragma GCC unroll 8
  for (int c = 0; c < n; ++c) {
    if (c + 1 < n)
      for (int64_t k = last_length; k < length; ++k)
        sum[c] = fma(broadcast_from(left + (c * length + k) * step),
                     load_columns<T, W>(right + (c * length + k) * panel_width, part), sum[c]);
    sums[c] = sum[c];
  }
}

/// One row and one panel of columns, whose sums are several chunks of this length.
template <class T, class W>
void run_narrow(const Block<T>& b, int64_t length, int64_t count) {
  for (int64_t column = 0; column < b.columns; column += lanes<T>) {
    Vector<T> total{}, sums[6];
    const int64_t groups = ceil_div(count, int64_t{6});
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t first = count * g / groups, n = count * (g + 1) / groups - first;
      const int64_t last_length = first + n == count ? b.terms.length - (count - 1) * length : length;
      const T* left = b.left[0] + first * length * b.terms.step;
      const W* right = static_cast<const W*>(b.right) + first * length * panel_width;
      const int part = static_cast<int>(column / lanes<T>);
      switch (n) {
        case 1: sum_chunks<T, W, 1>(left, b.terms.step, right, part, length, last_length, sums); break;
        case 2: sum_chunks<T, W, 2>(left, b.terms.step, right, part, length, last_length, sums); break;
        case 3: sum_chunks<T, W, 3>(left, b.terms.step, right, part, length, last_length, sums); break;
        case 4: sum_chunks<T, W, 4>(left, b.terms.step, right, part, length, last_length, sums); break;
        case 5: sum_chunks<T, W, 5>(left, b.terms.step, right, part, length, last_length, sums); break;
        case 6: sum_chunks<T, W, 6>(left, b.terms.step, right, part, length, last_length, sums); break;
      }
      for (int64_t c = 0; c < n; ++c) total = first + c == 0 ? sums[c] : total + sums[c];
    }
    Tile<T> t;
    t.out = b.out;
    t.residual = b.residual;
    t.column = column;
    t.columns = b.columns - column < lanes<T> ? b.columns - column : lanes<T>;
    t.bias = b.bias == nullptr ? nullptr : b.bias + column;
    t.alpha = b.alpha;
    t.beta = b.beta;
    t.first = t.last = true;
    t.has_residual = b.has_residual;
    t.relu = b.relu;
    finish_columns(t, &total, 1, 1);
  }
}

template <class T>
void gather_terms(const Block<T>& b, const Segment* segments, int64_t count, T* to) {
  for (int64_t s = 0; s < count; ++s)
    for (int64_t k = 0; k < segments[s].length; ++k) {
      const int64_t at = segments[s].offset / static_cast<int64_t>(sizeof(T)) + k * b.terms.step;
      for (int64_t g = 0; g < b.groups; ++g)
        for (int64_t i = 0; i < b.group_width; i += 8, to += 8)
          __builtin_memcpy(to, b.group[g] + at + i, 8 * sizeof(T));  // a loop would be done one by one
    }
}

/// Which panel each tile of a column of tiles fetches for those that come after: a few tiles a panel each, the others
/// nothing, so that memory is asked evenly.
template <class T>
struct Fetch {
  const char* first = nullptr;
  int64_t begin = 0, end = 0, tiles = 1;

  void from(const void* panels, int64_t count, int64_t all_tiles, int64_t turn = 0, int64_t turns = 1) {
    first = static_cast<const char*>(panels);
    tiles = all_tiles;
    begin = count * turn / turns;
    end = panels == nullptr ? begin : count * (turn + 1) / turns;
  }
  const char* at(int64_t tile, const Tile<T>& t) const {
    const int64_t panel = begin + tile * (end - begin) / tiles;
    const bool begins = panel < end && (tile == 0 || panel > begin + (tile - 1) * (end - begin) / tiles);
    return begins ? first + panel * t.panel_step : t.right;
  }
};

/// Rows cut into nearly equal parts.
struct Parts {
  int64_t count, each, more;
  Parts(int64_t rows, int64_t count) : count(count), each(rows / count), more(rows % count) {}
  int64_t begin(int64_t i) const { return i * each + (i < more ? i : more); }
};

}  // namespace detail

/// W: what a packed right side is made of.
template <class T, class W = T>
void run_block(const Block<T>& b) {
  const W* const b_right = static_cast<const W*>(b.right);
  constexpr int per_panel = panel_width / lanes<T>;
  const int64_t vectors = ceil_div(b.columns, panel_width) * per_panel;
  Chunks chunks(b.terms, sizeof(T));
  // Sums that wait for more terms lie in `out` itself, unless it still holds something that is needed.
  const bool own = b.has_residual && b.residual[0] == b.out[0];
  const bool direct = b.out_step == 1 && (!b.has_residual || b.residual_step == 1) &&
                      (b.bias == nullptr || b.bias_step == 1) && (chunks.count() == 1 || (b.beta == 0 && !own));
  if (b.rows == 1 && b.packed && direct && b.columns <= panel_width && chunks.count() > 1 && chunks.equal_length() > 0)
    return detail::run_narrow<T, W>(b, chunks.equal_length(), chunks.count());
  T* const panels = b.scratch + block_scratch;
  const T* gathered[block_rows];
  for (int64_t r = 0; b.groups > 0 && r < b.rows; ++r) gathered[r] = panels + b.row_at[r];
  const T* const* const left = b.groups > 0 ? gathered : b.left;
  T* sums[block_rows];  // what waits in scratch
  if (!direct)
    for (int64_t r = 0; r < b.rows; ++r) sums[r] = b.scratch + r * block_columns;
  Segment segments[chunk_segments];
  Tile<T> t;
  t.segments = segments;
  t.step = (b.groups > 0 ? b.groups * b.group_width : b.terms.step) * static_cast<int64_t>(sizeof(T));
  t.alpha = b.alpha;
  t.beta = b.beta;
  t.has_residual = b.has_residual;
  t.relu = b.relu;
  t.far = b.far;
  int64_t term = 0;
  for (int64_t chunk = 0; chunk < chunks.count(); ++chunk) {
    const int64_t terms = chunks.next(segments, t.segment_count);
    t.first = chunk == 0;
    const bool last = chunk + 1 == chunks.count();
    if (b.groups > 0) {
      detail::gather_terms(b, segments, t.segment_count, panels);
      segments[0] = {0, terms};
      t.segment_count = 1;
    }

    detail::Fetch<T> fetch;
    auto at = [&](int64_t v, int width, int64_t lo, int64_t hi, const detail::Parts& tiles) {
      const int64_t column = v * lanes<T>;
      t.columns = direct && b.columns - column < width * lanes<T> ? b.columns - column : width * lanes<T>;
      t.last = last && direct;
      t.bias = b.bias == nullptr ? nullptr : b.bias + column;
      for (int64_t i = lo; i < hi; ++i) {
        const int64_t r0 = tiles.begin(i), rows = tiles.begin(i + 1) - r0;
        t.row = left + r0;
        t.out = (direct ? b.out : sums) + r0;
        t.residual = b.residual + r0;
        t.column = column;
        t.ahead = fetch.at(i - lo, t);
        run_tile<T, W>(static_cast<int>(rows), width, t);
      }
    };
    int64_t packed_panel = -1;
    auto right = [&](int64_t v, int width) {
      const int64_t panel = v / per_panel, lane = v % per_panel * lanes<T>;
      t.right_step = panel_width * static_cast<int64_t>(sizeof(W));
      t.panel_step = b.panel_step * static_cast<int64_t>(sizeof(W));
      const W* from = b_right + panel * b.panel_step + term * panel_width + slot_of<W>(static_cast<int>(lane));
      if constexpr (sizeof(T) == sizeof(W))
        if (!b.packed) {
          const int64_t column = v * lanes<T>;
          from = b_right + term * b.right_row + column * b.right_column;
          if (b.right_column == 1 && b.rows <= tile_rows && column + width * lanes<T> <= b.columns) {
            t.right_step = b.right_row * static_cast<int64_t>(sizeof(T));
            t.panel_step = panel_width * static_cast<int64_t>(sizeof(T));
          } else {
            t.panel_step = terms * panel_width * static_cast<int64_t>(sizeof(T));
            if (packed_panel != panel) {
              packed_panel = panel;
              for (int64_t p = 0; p < ceil_div(width, per_panel); ++p) {
                const int64_t rest = b.columns - (panel + p) * panel_width;
                pack_panel(b_right + term * b.right_row + (panel + p) * panel_width * b.right_column, b.right_row,
                           b.right_column, rest < panel_width ? rest : panel_width, terms,
                           panels + p * terms * panel_width);
              }
            }
            from = panels + lane;
          }
        }
      t.right = reinterpret_cast<const char*>(from);
    };
    auto tiles = [&](int width) { return detail::Parts(b.rows, ceil_div(b.rows, TileShapes<T>::rows(width))); };

    if (b.packed && terms <= 128 && b.rows > tile_rows) {  // few terms: a tile's rows stay in the first cache
      const int widest = TileShapes<T>::width(vectors, vectors, b.rows);
      const detail::Parts all = tiles(widest);
      for (int64_t i = 0; i < all.count; ++i)
        for (int64_t v = 0; v < vectors;) {
          const int width = TileShapes<T>::width(vectors, vectors - v, b.rows);
          right(v, width);
          if (TileShapes<T>::rows(width) >= TileShapes<T>::rows(widest)) {
            at(v, width, i, i + 1, all);
          } else {
            const detail::Parts parts = tiles(width);
            at(v, width, parts.count * i / all.count, parts.count * (i + 1) / all.count, parts);
          }
          v += width;
        }
    } else {
      for (int64_t v = 0; v < vectors;) {
        const int width = TileShapes<T>::width(vectors, vectors - v, b.rows);
        right(v, width);
        const detail::Parts parts = tiles(width);
        if (b.packed) {
          const int64_t panels_read = ceil_div(width, per_panel);
          if (v + width < vectors)
            fetch.from(b_right + (v + width) / per_panel * b.panel_step + term * panel_width, panels_read, parts.count);
          else if (!last) fetch.from(b_right + (term + terms) * panel_width, panels_read, parts.count);
          else fetch.from(b.then, panels_read, parts.count, b.turn, b.turns);
        }
        at(v, width, 0, parts.count, parts);
        v += width;
      }
    }
    term += terms;
  }
  if (!direct) detail::finish(b, 0, b.columns);
}

}  // namespace tenon::kernels

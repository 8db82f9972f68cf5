// The functions of attention.h, for an element type.
#pragma once
#include "kernels/attention.h"
#include "kernels/block.h"
#include "kernels/kernel.h"
#include "kernels/rows.h"

namespace tenon::kernels {

static_assert(attention_panel == panel_width && attention_block <= block_rows);
static_assert(attention_fixed_scratch == unpacked_scratch);

inline AttentionSizes<int64_t> sizes_of(const AttentionParams& p) {
  return {p.batch, p.heads, p.key_heads, p.queries, p.keys, p.width, p.value_width};
}

template <class T>
struct Matrix {
  T* data;
  int64_t row, column;
  Matrix<T> turned() const { return {data, column, row}; }
};

/// Positions of one head from `first` on, as rows.
template <class T>
Matrix<T> head(T* data, const int64_t (&strides)[4], int64_t b, int64_t h, int64_t first = 0) {
  return {data + b * strides[0] + h * strides[1] + first * strides[2], strides[2], strides[3]};
}

/// A right side of k rows and n columns in panels, as multiply takes it.
template <class T, class U>
void pack(int64_t k, int64_t n, Matrix<U> from, T* to) {
  for (int64_t j = 0; j < n; j += panel_width)
    pack_panel(from.data + j * from.column, from.row, from.column, least(n - j, int64_t{panel_width}), k, to + j * k);
}

/// out[m, n] = factor * left[m, k] * right[k, n], added to what is there where `add`. The panels of the right side are
/// `panel_rows` rows long.
template <class T, class U>
void multiply(int64_t m, int64_t n, int64_t k, Matrix<U> left, const T* right, int64_t panel_rows, Matrix<T> out,
              T factor, bool add, T* scratch) {
  Block<T> b;
  b.terms.length = k;
  b.terms.step = left.column;
  b.panel_step = panel_rows * panel_width;
  b.out_step = out.column;
  b.alpha = factor;
  b.beta = add ? 1 : 0;
  b.scratch = scratch;
  for (int64_t column = 0; column < n; column += block_columns) {
    b.columns = least(n - column, block_columns);
    b.right = right + column * panel_rows;
    for (int64_t row = 0; row < m; row += block_rows) {
      b.rows = least(m - row, block_rows);
      for (int64_t i = 0; i < b.rows; ++i) {
        b.left[i] = left.data + (row + i) * left.row;
        b.out[i] = out.data + (row + i) * out.row + column * out.column;
      }
      run_block(b);
    }
  }
}

/// Some queries of one head, and the keys that any of them sees.
struct Queries {
  int64_t b, h, key_head, first, count, keys;
};
inline Queries queries_of(const AttentionParams& p, int64_t b, int64_t h, int64_t first, int64_t block) {
  const int64_t count = least(p.queries - first, block);
  return {b, h, h / (p.heads / p.key_heads), first, count, p.causal ? least(first + count, p.keys) : p.keys};
}

/// Masks the scaled products of one query; gives how many keys it sees at most, and the greatest score.
template <class T>
int64_t finish_scores(const AttentionParams& p, const void* masks, const Queries& q, int64_t i, T* row, T& greatest) {
  const int64_t at = q.first + i, seen = p.causal ? least(at + 1, q.keys) : q.keys;
  const int64_t offset = p.mask + q.b * p.mask_strides[0] + q.h * p.mask_strides[1] + at * p.mask_strides[2];
  const int64_t step = p.mask_strides[3];
  if (p.mask_kind == mask_added) {
    const T* mask = static_cast<const T*>(masks) + offset;
    if (step == 1)
      for (int64_t j = 0; j < seen; ++j) row[j] += mask[j];
    else
      for (int64_t j = 0; j < seen; ++j) row[j] += mask[j * step];
  } else if (p.mask_kind == mask_keep) {
    const uint8_t* keep = static_cast<const uint8_t*>(masks) + offset;
    for (int64_t j = 0; j < seen; ++j) row[j] = keep[j * step] ? row[j] : -static_cast<T>(__builtin_inff());
  }
  greatest = greatest_of(seen, row);
  return seen;
}

/// Whether any score of the row is NaN: the greatest is found without looking at them.
template <class T>
bool has_nan(const T* row, int64_t count) {
  bool found = false;
  for (int64_t j = 0; j < count; ++j) found |= row[j] != row[j];
  return found;
}

template <class T>
int attention_pack(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<AttentionParams>(args);
  if (p.queries <= attention_in_place) return TENON_KERNEL_OK;
  const AttentionSizes<int64_t> sizes = sizes_of(p);
  const int64_t key_panels = sizes.panels(p.keys), panels = key_panels + sizes.panels(p.value_width);
  for (int64_t i = lo; i < hi; ++i) {
    const int64_t b = i / panels / p.key_heads, h = i / panels % p.key_heads, panel = i % panels;
    T* to = buffer<T>(args, 2) + (b * p.key_heads + h) * sizes.packed_head();
    if (panel < key_panels) {
      const int64_t first = panel * panel_width;
      const auto keys = head(buffer<const T>(args, 0) + p.k, p.k_strides, b, h, first).turned();
      pack_panel(keys.data, keys.row, keys.column, least(p.keys - first, int64_t{panel_width}), p.width,
                 to + first * p.width);
    } else {
      const int64_t first = (panel - key_panels) * panel_width;
      const auto values = head(buffer<const T>(args, 1) + p.v, p.v_strides, b, h);
      pack_panel(values.data + first * values.column, values.row, values.column,
                 least(p.value_width - first, int64_t{panel_width}), p.keys,
                 to + sizes.padded(p.keys) * p.width + first * p.keys);
    }
  }
  return TENON_KERNEL_OK;
}

/// The scaled products of queries and keys into scores, rows of `pitch` elements.
template <class T>
void forward_products(const AttentionParams& p, const tenon_args& args, const Queries& q, const T* packed, T* scores,
                      int64_t pitch, T* scratch) {
  const auto queries = head(buffer<const T>(args, 0) + p.q, p.q_strides, q.b, q.h, q.first);
  if (packed != nullptr) {
    multiply(q.count, pitch, p.width, queries, packed, p.width, Matrix<T>{scores, pitch, 1}, static_cast<T>(p.scale),
             false, scratch);
    return;
  }
  const auto keys = head(buffer<const T>(args, 1) + p.k, p.k_strides, q.b, q.key_head);
  for (int64_t j = 0; j < q.keys; ++j)
    for (int64_t i = 0; i < q.count; ++i)
      scores[i * pitch + j] = static_cast<T>(p.scale) * dot(p.width, queries.data + i * queries.row, queries.column,
                                                            keys.data + j * keys.row, keys.column);
}

/// The weighted sums of values, rows of `pitch` elements.
template <class T>
void forward_sums(const AttentionParams& p, const tenon_args& args, const Queries& q, const T* packed, const T* weights,
                  int64_t weights_pitch, T* sums, int64_t pitch, T* scratch) {
  const Matrix<const T> left{weights, weights_pitch, 1};
  if (packed != nullptr) {
    multiply(q.count, pitch, q.keys, left, packed, p.keys, Matrix<T>{sums, pitch, 1}, T(1), false, scratch);
    return;
  }
  const auto values = head(buffer<const T>(args, 2) + p.v, p.v_strides, q.b, q.key_head);
  Block<T> b;
  b.packed = false;
  b.terms.length = q.keys;
  b.right_row = values.row;
  b.right_column = values.column;
  b.scratch = scratch;
  b.rows = q.count;
  for (int64_t column = 0; column < p.value_width; column += block_columns) {
    b.columns = least(p.value_width - column, block_columns);
    b.right = values.data + column * values.column;
    for (int64_t i = 0; i < q.count; ++i) {
      b.left[i] = weights + i * weights_pitch;
      b.out[i] = sums + i * pitch + column;
    }
    run_block(b);
  }
}

/// One block of queries against keys and values packed at `packed`, or read where they lie if that is null.
template <class T>
void attend(const AttentionParams& p, const tenon_args& args, const Queries& q, const T* packed, T* memory) {
  const AttentionSizes<int64_t> sizes = sizes_of(p);
  const int64_t pitch = sizes.padded(q.keys), sums_pitch = sizes.padded(p.value_width);
  T* const scores = memory;
  T* const sums = scores + attention_block * sizes.padded(p.keys);
  T* const scratch = sums + attention_block * sums_pitch;
  const void* masks = p.mask_kind == mask_none ? nullptr : args.buffers[6];
  forward_products(p, args, q, packed, scores, pitch, scratch);
  T factor[attention_block], greatest_of_row[attention_block];
  double total[attention_block];
  T* logsumexp = buffer<T>(args, 5) + p.logsumexp + q.b * p.logsumexp_strides[0] + q.h * p.logsumexp_strides[1];
  int64_t seen[attention_block];
  for (int64_t i = 0; i < q.count; ++i)  // of all first: a row waits for its greatest
    seen[i] = finish_scores(p, masks, q, i, scores + i * pitch, greatest_of_row[i]);
  for (int64_t i = 0; i < q.count; ++i) {
    T* row = scores + i * pitch;
    if (greatest_of_row[i] == -static_cast<T>(__builtin_inff()) && !has_nan(row, seen[i])) {
      seen[i] = 0;
      factor[i] = greatest_of_row[i] = 0;
      total[i] = 1;
    } else {
      const T sum = weigh_row(seen[i], row, greatest_of_row[i]);
      factor[i] = 1 / sum;
      total[i] = sum;
    }
    for (int64_t j = seen[i]; j < q.keys; ++j) row[j] = 0;
  }
  for (int64_t i = 0; i < q.count; ++i) total[i] = log(total[i]);
  for (int64_t i = 0; i < q.count; ++i)
    logsumexp[(q.first + i) * p.logsumexp_strides[2]] = greatest_of_row[i] + static_cast<T>(total[i]);
  forward_sums(p, args, q, packed == nullptr ? nullptr : packed + sizes.padded(p.keys) * p.width, scores, pitch, sums,
               sums_pitch, scratch);
  const Matrix<T> out = head(buffer<T>(args, 4) + p.out, p.out_strides, q.b, q.h, q.first);
  for (int64_t i = 0; i < q.count; ++i) {
    const T* const sum = sums + i * sums_pitch;
    T* const to = out.data + i * out.row;
    // Zero, whatever the values are, for a query that sees nothing.
    if (factor[i] == 0)
      for (int64_t j = 0; j < p.value_width; ++j) to[j * out.column] = 0;
    else if (out.column == 1)
      for (int64_t j = 0; j < p.value_width; ++j) to[j] = sum[j] * factor[i];
    else
      for (int64_t j = 0; j < p.value_width; ++j) to[j * out.column] = sum[j] * factor[i];
  }
}

template <class T>
int attention(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<AttentionParams>(args);
  const AttentionSizes<int64_t> sizes = sizes_of(p);
  const int64_t blocks = sizes.blocks(p.queries);
  for (int64_t task = lo; task < hi; ++task) {
    const int64_t h = task / blocks % p.heads, b = task / blocks / p.heads;
    const Queries q = queries_of(p, b, h, task % blocks * attention_block, attention_block);
    const T* packed = p.queries <= attention_in_place
                          ? nullptr
                          : buffer<const T>(args, 3) + (b * p.key_heads + q.key_head) * sizes.packed_head();
    attend(p, args, q, packed, static_cast<T*>(args.scratch));
  }
  return TENON_KERNEL_OK;
}

template <class T>
int attention_heads(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<AttentionParams>(args);
  const AttentionSizes<int64_t> sizes = sizes_of(p);
  const int64_t group = p.heads / p.key_heads;
  T* const packed = static_cast<T*>(args.scratch);
  for (int64_t task = lo; task < hi; ++task) {
    const int64_t b = task / p.key_heads, key_head = task % p.key_heads;
    pack(p.width, p.keys, head(buffer<const T>(args, 1) + p.k, p.k_strides, b, key_head).turned(), packed);
    pack(p.keys, p.value_width, head(buffer<const T>(args, 2) + p.v, p.v_strides, b, key_head),
         packed + sizes.padded(p.keys) * p.width);
    for (int64_t h = key_head * group; h < (key_head + 1) * group; ++h)
      for (int64_t first = 0; first < p.queries; first += attention_block)
        attend(p, args, queries_of(p, b, h, first, attention_block), packed, packed + sizes.packed_head());
  }
  return TENON_KERNEL_OK;
}

template <class T>
void clear(Matrix<T> m, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) m.data[i * m.row + j * m.column] = 0;
}

/// The parts of a thread's scratch memory, and one head of keys and values packed there.
template <class T>
struct GradientMemory {
  T *keys_turned, *values_turned, *keys;  // right sides of q k^T, grad v^T and ds k
  T *scores, *slopes, *queries, *grads, *scratch;

  GradientMemory(const AttentionSizes<int64_t>& s, void* memory) {
    const int64_t keys_padded = s.padded(s.keys);
    keys_turned = static_cast<T*>(memory);
    values_turned = keys_turned + keys_padded * s.width;
    keys = values_turned + keys_padded * s.value_width;
    scores = keys + s.padded(s.width) * s.keys;
    slopes = scores + attention_gradient_block * keys_padded;
    queries = slopes + attention_gradient_block * keys_padded;
    grads = queries + attention_gradient_block * s.padded(s.width);
    scratch = grads + attention_gradient_block * s.padded(s.value_width);
  }
};

/// Adds what some queries contribute to the gradients of keys and values, and writes those of the queries.
template <class T>
void gradient_block(const AttentionGradientParams& p, const tenon_args& args, const Queries& q,
                    const GradientMemory<T>& m) {
  const AttentionSizes<int64_t> sizes = sizes_of(p);
  const int64_t pitch = sizes.padded(q.keys);
  const Matrix<T> weights{m.scores, pitch, 1}, slopes{m.slopes, pitch, 1};
  const auto grad = head(buffer<const T>(args, 0) + p.grad, p.grad_strides, q.b, q.h, q.first);
  const auto queries = head(buffer<const T>(args, 1) + p.q, p.q_strides, q.b, q.h, q.first);
  const auto out = head(buffer<const T>(args, 4) + p.out, p.out_strides, q.b, q.h, q.first);
  const T* logsumexp = buffer<const T>(args, 5) + p.logsumexp + q.b * p.logsumexp_strides[0] +
                       q.h * p.logsumexp_strides[1] + q.first * p.logsumexp_strides[2];
  multiply(q.count, pitch, p.width, queries, m.keys_turned, p.width, weights, static_cast<T>(p.scale), false,
           m.scratch);
  multiply(q.count, pitch, p.value_width, grad, m.values_turned, p.value_width, slopes, T(1), false, m.scratch);
  for (int64_t i = 0; i < q.count; ++i) {
    T* row = m.scores + i * pitch;
    T* slope = m.slopes + i * pitch;
    T greatest;
    const int64_t seen = finish_scores(p, p.mask_kind == mask_none ? nullptr : args.buffers[9], q, i, row, greatest);
    exp_row(seen, row, logsumexp[i * p.logsumexp_strides[2]]);
    // The mean of the slopes, weighted.
    const T mean = dot(p.value_width, grad.data + i * grad.row, grad.column, out.data + i * out.row, out.column);
    const T scale = static_cast<T>(p.scale);
    for (int64_t j = 0; j < seen; ++j) slope[j] = row[j] * (slope[j] - mean) * scale;
    for (int64_t j = seen; j < q.keys; ++j) row[j] = slope[j] = 0;
  }
  pack(q.count, p.value_width, grad, m.grads);
  multiply(q.keys, p.value_width, q.count, weights.turned(), m.grads, q.count,
           head(buffer<T>(args, 8) + p.grad_v, p.grad_v_strides, q.b, q.key_head), T(1), true, m.scratch);
  pack(q.count, p.width, queries, m.queries);
  multiply(q.keys, p.width, q.count, slopes.turned(), m.queries, q.count,
           head(buffer<T>(args, 7) + p.grad_k, p.grad_k_strides, q.b, q.key_head), T(1), true, m.scratch);
  multiply(q.count, p.width, q.keys, slopes, m.keys, p.keys,
           head(buffer<T>(args, 6) + p.grad_q, p.grad_q_strides, q.b, q.h, q.first), T(1), false, m.scratch);
}

template <class T>
int attention_gradient(const tenon_args& args, int64_t lo, int64_t hi) {
  const auto& p = params<AttentionGradientParams>(args);
  const GradientMemory<T> memory(sizes_of(p), args.scratch);
  const int64_t group = p.heads / p.key_heads;
  for (int64_t task = lo; task < hi; ++task) {
    const int64_t b = task / p.key_heads, key_head = task % p.key_heads;
    const auto keys = head(buffer<const T>(args, 2) + p.k, p.k_strides, b, key_head);
    const auto values = head(buffer<const T>(args, 3) + p.v, p.v_strides, b, key_head);
    pack(p.width, p.keys, keys.turned(), memory.keys_turned);
    pack(p.value_width, p.keys, values.turned(), memory.values_turned);
    pack(p.keys, p.width, keys, memory.keys);
    clear(head(buffer<T>(args, 7) + p.grad_k, p.grad_k_strides, b, key_head), p.keys, p.width);
    clear(head(buffer<T>(args, 8) + p.grad_v, p.grad_v_strides, b, key_head), p.keys, p.value_width);
    for (int64_t h = key_head * group; h < (key_head + 1) * group; ++h)
      for (int64_t first = 0; first < p.queries; first += attention_gradient_block)
        gradient_block(p, args, queries_of(p, b, h, first, attention_gradient_block), memory);
  }
  return TENON_KERNEL_OK;
}

}  // namespace tenon::kernels

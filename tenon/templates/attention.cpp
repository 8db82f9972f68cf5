#include "tenon/templates/attention.h"

#include "tenon/templates/gemm.h"
#include "tenon/templates/kernels.h"
#include "tenon/templates/parallel.h"

namespace tenon::templates {
namespace {

using Int = std::int64_t;

constexpr Int block = 96;  // queries at a time: enough to pay for packing the keys, few enough for the second cache

template <class T>
constexpr T infinity = static_cast<T>(__builtin_inff());

/// A matrix in memory for one product.
template <class T>
struct Matrix {
  T* data;
  Int row, col;
  Matrix<T> turned() const { return {data, col, row}; }
};
template <class T>
Matrix<T> matrix(const Heads<T>& heads, Int b, Int h, Int first) {
  if (!heads.data) return {nullptr, heads.stride[2], heads.stride[3]};
  return {heads.data + b * heads.stride[0] + h * heads.stride[1] + first * heads.stride[2], heads.stride[2],
          heads.stride[3]};
}

template <class T, class A, class B>
void multiply(Int m, Int n, Int k, Matrix<A> a, Matrix<B> b, Matrix<T> c, bool add) {
  GemmArgs<T> g;
  g.m = m, g.n = n, g.k = k;
  g.a = a.data, g.a_row = a.row, g.a_col = a.col;
  g.b = b.data, g.b_row = b.row, g.b_col = b.col;
  g.c = c.data, g.c_row = c.row, g.c_col = c.col;
  g.beta = add ? T(1) : T(0);
  gemm(g);
}

/// Some queries of one head, and the keys that any of them sees.
struct Queries {
  Int b, h, first, count, keys;
};
template <class T>
Queries queries_of(const AttentionArgs<T>& a, Int b, Int h, Int first) {
  Int count = a.queries - first < block ? a.queries - first : block;
  return {b, h, first, count, a.causal && first + count < a.keys ? first + count : a.keys};
}

/// The products of queries and keys, unscaled, into scores [count][keys].
template <class T>
void products(const AttentionArgs<T>& a, const Queries& q, T* scores) {
  multiply(q.count, q.keys, a.width, matrix(a.q, q.b, q.h, q.first),
           matrix(a.k, q.b, q.h / (a.heads / a.key_heads), Int{0}).turned(), Matrix<T>{scores, q.keys, 1}, false);
}

/// Scales and masks one row; returns how many keys the query sees at most, and the greatest score.
template <class T>
Int finish_scores(const AttentionArgs<T>& a, const Queries& q, Int i, T* row, T& greatest) {
  const Int at = q.first + i;
  const Int seen = a.causal && at + 1 < q.keys ? at + 1 : q.keys;
  const Int offset = q.b * a.mask_stride[0] + q.h * a.mask_stride[1] + at * a.mask_stride[2], step = a.mask_stride[3];
  T factor = a.scale;
  if (a.mask != nullptr) {
    const T* mask = a.mask + offset;
    if (step == 1)
      for (Int j = 0; j < seen; ++j) row[j] = row[j] * factor + mask[j];
    else
      for (Int j = 0; j < seen; ++j) row[j] = row[j] * factor + mask[j * step];
    factor = 1;
  } else if (a.keep != nullptr) {
    for (Int j = 0; j < seen; ++j) row[j] = a.keep[offset + j * step] ? row[j] * factor : -infinity<T>;
    factor = 1;
  }
  greatest = kernels<T>().scale_max(seen, factor, row);
  return seen;
}

/// Whether any score of the row is NaN: scale_max passes them over.
template <class T>
bool has_nan(const T* row, Int count) {
  bool found = false;
  for (Int j = 0; j < count; ++j) found |= row[j] != row[j];
  return found;
}

template <class T>
void forward_block(const AttentionArgs<T>& a, const Queries& q, T* scores, T* sums, Heads<T> out, T* logsumexp,
                   const Int (&stride)[3]) {
  products(a, q, scores);
  T factor[block];
  for (Int i = 0; i < q.count; ++i) {
    T* row = scores + i * q.keys;
    T greatest;
    Int seen = finish_scores(a, q, i, row, greatest);
    T result = 0;
    factor[i] = 0;
    if (greatest == -infinity<T> && !has_nan(row, seen)) {
      seen = 0;
    } else {
      const T sum = kernels<T>().exp_row(seen, row, greatest);
      factor[i] = 1 / sum;
      result = greatest + static_cast<T>(__builtin_log(static_cast<double>(sum)));
    }
    for (Int j = seen; j < q.keys; ++j) row[j] = 0;
    if (logsumexp != nullptr) logsumexp[q.b * stride[0] + q.h * stride[1] + (q.first + i) * stride[2]] = result;
  }
  multiply(q.count, a.value_width, q.keys, Matrix<T>{scores, q.keys, 1},
           matrix(a.v, q.b, q.h / (a.heads / a.key_heads), Int{0}), Matrix<T>{sums, a.value_width, 1}, false);
  const Matrix<T> to = matrix(out, q.b, q.h, q.first);
  for (Int i = 0; i < q.count; ++i)
    for (Int j = 0; j < a.value_width; ++j)
      // Zero, whatever the values are, for a query that sees nothing.
      to.data[i * to.row + j * to.col] = factor[i] == 0 ? T(0) : sums[i * a.value_width + j] * factor[i];
}

template <class T>
void clear(const Heads<T>& heads, Int b, Int h, Int rows, Int width) {
  const Matrix<T> m = matrix(heads, b, h, Int{0});
  for (Int i = 0; i < rows; ++i)
    for (Int j = 0; j < width; ++j) m.data[i * m.row + j * m.col] = 0;
}

/// p and the gradient of the unscaled scores for some queries; scores and slopes are [count][keys].
template <class T>
void backward_block(const AttentionArgs<T>& a, const AttentionGradient<T>& g, const Queries& q, T* scores, T* slopes) {
  const Int kh = q.h / (a.heads / a.key_heads);
  products(a, q, scores);
  const Matrix<const T> out_gradient = matrix(g.out_gradient, q.b, q.h, q.first),
                        out = matrix(g.out, q.b, q.h, q.first);
  multiply(q.count, q.keys, a.value_width, out_gradient, matrix(a.v, q.b, kh, Int{0}).turned(),
           Matrix<T>{slopes, q.keys, 1}, false);
  for (Int i = 0; i < q.count; ++i) {
    T* row = scores + i * q.keys;
    T greatest;
    const Int seen = finish_scores(a, q, i, row, greatest);
    const Int* stride = g.logsumexp_stride;
    kernels<T>().exp_row(seen, row, g.logsumexp[q.b * stride[0] + q.h * stride[1] + (q.first + i) * stride[2]]);
    T mean = 0;  // of the slopes, weighted with p: out_gradient . out
    for (Int j = 0; j < a.value_width; ++j)
      mean += out_gradient.data[i * out_gradient.row + j * out_gradient.col] * out.data[i * out.row + j * out.col];
    T* slope = slopes + i * q.keys;
    for (Int j = 0; j < seen; ++j) slope[j] = row[j] * (slope[j] - mean) * a.scale;
    for (Int j = seen; j < q.keys; ++j) row[j] = slope[j] = 0;
  }
  const Matrix<T> p{scores, q.keys, 1}, ds{slopes, q.keys, 1};
  if (g.v.data != nullptr)
    multiply(q.keys, a.value_width, q.count, p.turned(), out_gradient, matrix(g.v, q.b, kh, Int{0}), true);
  if (g.k.data != nullptr)
    multiply(q.keys, a.width, q.count, ds.turned(), matrix(a.q, q.b, q.h, q.first), matrix(g.k, q.b, kh, Int{0}), true);
  if (g.q.data != nullptr)
    multiply(q.count, a.width, q.keys, ds, matrix(a.k, q.b, kh, Int{0}), matrix(g.q, q.b, q.h, q.first), false);
}

}  // namespace

template <class T>
void attention(const AttentionArgs<T>& a, Heads<T> out, T* logsumexp, const Int (&stride)[3]) {
  const Int blocks = (a.queries + block - 1) / block;
  parallel_for(a.batch * a.heads * blocks, 1, [&](Int lo, Int hi) {
    Scratch scores(block * a.keys * static_cast<Int>(sizeof(T)));
    Scratch sums(block * a.value_width * static_cast<Int>(sizeof(T)));
    for (Int task = lo; task < hi; ++task) {
      const Int h = task / blocks % a.heads, b = task / blocks / a.heads;
      forward_block(a, queries_of(a, b, h, task % blocks * block), scores.as<T>(), sums.as<T>(), out, logsumexp,
                    stride);
    }
  });
}

template <class T>
void attention_gradient(const AttentionArgs<T>& a, const AttentionGradient<T>& g) {
  const Int group = a.heads / a.key_heads;
  // A key head belongs to one task, which takes the contributions in order.
  parallel_for(a.batch * a.key_heads, 1, [&](Int lo, Int hi) {
    Scratch scores(block * a.keys * static_cast<Int>(sizeof(T)));
    Scratch slopes(block * a.keys * static_cast<Int>(sizeof(T)));
    for (Int task = lo; task < hi; ++task) {
      const Int b = task / a.key_heads, kh = task % a.key_heads;
      if (g.k.data != nullptr) clear(g.k, b, kh, a.keys, a.width);
      if (g.v.data != nullptr) clear(g.v, b, kh, a.keys, a.value_width);
      for (Int h = kh * group; h < (kh + 1) * group; ++h)
        for (Int first = 0; first < a.queries; first += block)
          backward_block(a, g, queries_of(a, b, h, first), scores.as<T>(), slopes.as<T>());
    }
  });
}

#define TENON_INSTANCE(T)                                                             \
  template void attention<T>(const AttentionArgs<T>&, Heads<T>, T*, const Int(&)[3]); \
  template void attention_gradient<T>(const AttentionArgs<T>&, const AttentionGradient<T>&);
TENON_INSTANCE(float)
TENON_INSTANCE(double)
#undef TENON_INSTANCE

}  // namespace tenon::templates

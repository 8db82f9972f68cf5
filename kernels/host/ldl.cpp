// Symmetric matrices as L D Lᵀ, with Bunch and Kaufman's choice of pivots as LAPACK makes it: D has blocks of one row
// or of two, and of a block of two both pivots are negative.
#include "kernels/host/matrices.h"
#include "kernels/host/matrix.h"

namespace tenon::kernels {
namespace {

double magnitude(double x) { return x < 0 ? -x : x; }

/// The lower triangle of a[n, n], factored in place.
struct Ldl {
  double* a;
  int64_t n;
  double& at(int64_t i, int64_t j) const { return a[i * n + j]; }

  struct Choice {
    int64_t row, rows;  // the row that moves up, and how many rows its block has
  };
  // What is exchanged in column k; rows is 0 where the column is zero.
  Choice choose(int64_t k) const {
    constexpr double growth = 0.6403882032022076;  // (1 + √17) / 8
    double own = magnitude(at(k, k)), largest = 0;
    int64_t row = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (magnitude(at(i, k)) > largest) largest = magnitude(at(i, k)), row = i;
    if (own != own || (own == 0 && largest == 0)) return {k, 0};
    if (own >= growth * largest) return {k, 1};
    double beside = 0;
    for (int64_t j = k; j < row; ++j)
      if (magnitude(at(row, j)) > beside) beside = magnitude(at(row, j));
    for (int64_t i = row + 1; i < n; ++i)
      if (magnitude(at(i, row)) > beside) beside = magnitude(at(i, row));
    if (own >= growth * largest * (largest / beside)) return {k, 1};
    return {row, magnitude(at(row, row)) >= growth * beside ? 1 : 2};
  }
  // Rows and columns p < q of what is left.
  void exchange_both(int64_t p, int64_t q) const {
    for (int64_t i = q + 1; i < n; ++i) exchange(at(i, p), at(i, q));
    for (int64_t j = p + 1; j < q; ++j) exchange(at(j, p), at(q, j));
    exchange(at(p, p), at(q, q));
  }
  void eliminate_one(int64_t k) const {
    double inverse = 1 / at(k, k);
    for (int64_t j = k + 1; j < n; ++j)
      for (int64_t i = j; i < n; ++i) at(i, j) -= at(i, k) * at(j, k) * inverse;
    for (int64_t i = k + 1; i < n; ++i) at(i, k) *= inverse;
  }
  void eliminate_two(int64_t k) const {
    double beside = at(k + 1, k), below = at(k + 1, k + 1) / beside, above = at(k, k) / beside;
    double scale = 1 / (below * above - 1) / beside;
    for (int64_t j = k + 2; j < n; ++j) {
      double first = scale * (below * at(j, k) - at(j, k + 1)), second = scale * (above * at(j, k + 1) - at(j, k));
      for (int64_t i = j; i < n; ++i) at(i, j) -= at(i, k) * first + at(i, k + 1) * second;
      at(j, k) = first;
      at(j, k + 1) = second;
    }
  }
  /// Gives 0, or the first row (from 1) whose block of D is zero.
  int64_t factor(int64_t* pivots) const {
    int64_t info = 0;
    for (int64_t k = 0; k < n;) {
      Choice c = choose(k);
      if (c.rows == 0) {
        if (info == 0) info = k + 1;
        pivots[k] = k + 1;
        ++k;
        continue;
      }
      int64_t moved = k + c.rows - 1;
      if (c.row != moved) {
        exchange_both(moved, c.row);
        if (c.rows == 2) exchange(at(k + 1, k), at(c.row, k));
      }
      if (c.rows == 1) eliminate_one(k);
      else eliminate_two(k);
      for (int64_t i = 0; i < c.rows; ++i) pivots[k + i] = c.rows == 2 ? -(c.row + 1) : c.row + 1;
      k += c.rows;
    }
    return info;
  }

  /// b[n, columns] = a⁻¹ b for factors.
  void solve(const int64_t* pivots, double* b, int64_t columns) const {
    auto subtract = [&](int64_t i, double factor, int64_t j) {
      for (int64_t c = 0; c < columns; ++c) b[i * columns + c] -= factor * b[j * columns + c];
    };
    auto exchange_row = [&](int64_t i, int64_t pivot) {
      int64_t other = (pivot < 0 ? -pivot : pivot) - 1;
      if (other != i) exchange_rows(b + i * columns, b + other * columns, columns);
    };
    for (int64_t k = 0; k < n; ++k) {
      if (pivots[k] > 0) {
        exchange_row(k, pivots[k]);
        for (int64_t i = k + 1; i < n; ++i) subtract(i, at(i, k), k);
        for (int64_t c = 0; c < columns; ++c) b[k * columns + c] /= at(k, k);
        continue;
      }
      exchange_row(k + 1, pivots[k]);
      for (int64_t i = k + 2; i < n; ++i) subtract(i, at(i, k), k), subtract(i, at(i, k + 1), k + 1);
      double beside = at(k + 1, k), above = at(k, k) / beside, below = at(k + 1, k + 1) / beside,
             determinant = above * below - 1;
      for (int64_t c = 0; c < columns; ++c) {
        double &first = b[k * columns + c], &second = b[(k + 1) * columns + c];
        double p = first / beside, q = second / beside;
        first = (below * p - q) / determinant;
        second = (above * q - p) / determinant;
      }
      ++k;
    }
    for (int64_t k = n - 1; k >= 0; --k) {
      int64_t rows = pivots[k] > 0 ? 1 : 2;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = k + 1; i < n; ++i) subtract(k - r, at(i, k - r), i);
      exchange_row(k, pivots[k]);
      k -= rows - 1;
    }
  }
  /// Whether pivots are what factor gives: rows of the matrix, those below 0 in pairs.
  bool fit(const int64_t* pivots) const {
    for (int64_t k = 0; k < n; ++k) {
      if (pivots[k] == 0 || pivots[k] > n || pivots[k] < -n) return false;
      if (pivots[k] > 0) continue;
      if (k + 1 == n || pivots[k + 1] >= 0) return false;
      ++k;
    }
    return true;
  }
};

}  // namespace

// A; hermitian, check_errors -> LD, pivots, info
TENON_HOST_FUNCTION(linalg_ldl_factor) {
  (void)lo, (void)hi;
  Params params(*call);
  params.flag();
  bool check = params.flag();
  if (!is_square(call->inputs[0])) return TENON_KERNEL_ARITHMETIC;
  Matrices a = matrices(*call, call->inputs[0]);
  int64_t *info = work<int64_t>(*call, a.batch), *pivots = work<int64_t>(*call, a.batch * a.rows);
  if (!a || !info || !pivots) return TENON_KERNEL_MEMORY;
  for (int64_t b = 0; b < a.batch; ++b) {
    info[b] = Ldl{a[b], a.rows}.factor(pivots + b * a.rows);
    for (int64_t i = 0; i < a.rows; ++i)
      for (int64_t j = i + 1; j < a.rows; ++j) a[b][i * a.rows + j] = 0;
  }
  if (int status = write_info(*call, call->results[2], info, a.batch, check)) return status;
  if (count(call->results[1]) != a.batch * a.rows) return TENON_KERNEL_ARITHMETIC;
  write(call->results[1], pivots);
  return write_matrices(call->results[0], a);
}

// LD, pivots, B; hermitian
TENON_HOST_FUNCTION(linalg_ldl_solve) {
  (void)lo, (void)hi;
  tenon_tensor& out = call->results[0];
  Matrices ld = matrices_over(*call, call->inputs[0], out), x = matrices_over(*call, call->inputs[2], out);
  int64_t* pivots = over_batch<int64_t>(*call, call->inputs[1], 1, out, 2);
  if (!ld || !x || !pivots) return TENON_KERNEL_MEMORY;
  if (ld.columns != ld.rows || x.rows != ld.rows || call->inputs[1].sizes[call->inputs[1].rank - 1] != ld.rows)
    return TENON_KERNEL_ARITHMETIC;
  for (int64_t b = 0; b < ld.batch; ++b) {
    Ldl factors{ld[b], ld.rows};
    const int64_t* own = pivots + b * ld.rows;
    if (!factors.fit(own)) return refuse(*call, 1, ld.rows);
    factors.solve(own, x[b], x.columns);
  }
  return write_matrices(out, x);
}

}  // namespace tenon::kernels

// Factorizations of batches of matrices, and solving with them. Everything is computed in double precision.
#include "kernels/host/matrices.h"
#include "kernels/host/matrix.h"

namespace tenon::kernels {
namespace {

/// L and U in one, and pivots counted from 1; info is 0, or the column without a pivot.
struct LuFactors {
  Matrices lu;
  int32_t* pivots = nullptr;
  int64_t *info = nullptr, k = 0;
  LuFactors(Call& call, const tenon_tensor& a) : lu(matrices(call, a)), k(least(lu.rows, lu.columns)) {
    info = work<int64_t>(call, lu.batch);
    pivots = work<int32_t>(call, lu.batch * k);
    if (!*this) return;
    for (int64_t b = 0; b < lu.batch; ++b) info[b] = factor_lu(lu[b], lu.rows, lu.columns, pivots + b * k);
  }
  explicit operator bool() const { return lu && pivots && info; }
};

// Rows in the order that exchanges by pivots leave; 0, or a pivot out of range.
int64_t permuted(const int64_t* pivots, int64_t count, int64_t rows, int64_t* order) {
  for (int64_t i = 0; i < rows; ++i) order[i] = i;
  for (int64_t i = 0; i < count; ++i) {
    if (pivots[i] < 1 || pivots[i] > rows) return i + 1;
    exchange(order[i], order[pivots[i] - 1]);
  }
  return 0;
}

}  // namespace

// A; pivot, check_errors -> LU, pivots, info
TENON_HOST_FUNCTION(linalg_lu_factor) {
  (void)lo, (void)hi;
  Params params(*call);
  params.flag();
  bool check = params.flag();
  LuFactors f(*call, call->inputs[0]);
  if (!f) return TENON_KERNEL_MEMORY;
  if (int status = write_info(*call, call->results[2], f.info, f.lu.batch, check)) return status;
  tenon_tensor& pivots = call->results[1];
  if (count(pivots) != f.lu.batch * f.k) return TENON_KERNEL_ARITHMETIC;
  Walk at(pivots);
  for (int64_t i = 0; i < f.lu.batch * f.k; ++i, at.next())
    store(pivots.data, pivots.dtype, at.offset(), int64_t{f.pivots[i]});
  return write_matrices(call->results[0], f.lu);
}

// LU, pivots; unpack_data, unpack_pivots -> P, L, U
TENON_HOST_FUNCTION(linalg_lu_unpack) {
  (void)lo, (void)hi;
  Params params(*call);
  bool data = params.flag(), permutation = params.flag();
  Matrices lu = matrices(*call, call->inputs[0]);
  int64_t m = lu.rows, n = lu.columns, k = least(m, n);
  if (permutation) {
    if (count(call->inputs[1]) != lu.batch * k) return TENON_KERNEL_ARITHMETIC;
    int64_t *pivots = elements<int64_t>(*call, call->inputs[1]), *order = work<int64_t>(*call, m);
    Matrices p = zero_matrices(*call, lu.batch, m, m);
    if (!pivots || !order || !p) return TENON_KERNEL_MEMORY;
    for (int64_t b = 0; b < lu.batch; ++b) {
      if (int64_t wrong = permuted(pivots + b * k, k, m, order)) return refuse(*call, 1, m, pivots[b * k + wrong - 1]);
      for (int64_t i = 0; i < m; ++i) p[b][order[i] * m + i] = 1;
    }
    if (int status = write_matrices(call->results[0], p)) return status;
  }
  if (!data) return 0;
  Matrices l = zero_matrices(*call, lu.batch, m, k), u = zero_matrices(*call, lu.batch, k, n);
  if (!lu || !l || !u) return TENON_KERNEL_MEMORY;
  for (int64_t b = 0; b < lu.batch; ++b)
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < k; ++j) l[b][i * k + j] = i == j ? 1 : j < i ? lu[b][i * n + j] : 0;
      for (int64_t j = i; j < n && i < k; ++j) u[b][i * n + j] = lu[b][i * n + j];
    }
  if (int status = write_matrices(call->results[1], l)) return status;
  return write_matrices(call->results[2], u);
}

// LU, pivots, B; left, adjoint
TENON_HOST_FUNCTION(linalg_lu_solve) {
  (void)lo, (void)hi;
  Params params(*call);
  bool left = params.flag(), back = params.flag() != !left;  // from the right is from the left, all transposed
  tenon_tensor& out = call->results[0];
  const tenon_tensor& right = call->inputs[2];
  Matrices lu = matrices_over(*call, call->inputs[0], out);
  Matrices x = matrices_over(*call, left ? right : transposed(right), out);
  int64_t n = lu.rows, k = x.columns;
  int64_t* pivots = over_batch<int64_t>(*call, call->inputs[1], 1, out, 2);
  if (!lu || !x || !pivots) return TENON_KERNEL_MEMORY;
  if (lu.columns != n || x.rows != n || call->inputs[1].sizes[call->inputs[1].rank - 1] != n)
    return TENON_KERNEL_ARITHMETIC;
  for (int64_t i = 0; i < lu.batch * n; ++i)
    if (pivots[i] < 1 || pivots[i] > n) return refuse(*call, 1, n, pivots[i]);
  for (int64_t b = 0; b < lu.batch; ++b) {
    auto exchange_row = [&](int64_t i) {
      int64_t other = pivots[b * n + i] - 1;
      if (other != i) exchange_rows(x[b] + i * k, x[b] + other * k, k);
    };
    if (!back) {
      for (int64_t i = 0; i < n; ++i) exchange_row(i);
      solve_triangle(lu[b], {.unit = true}, n, x[b], k);
      solve_triangle(lu[b], {.upper = true}, n, x[b], k);
    } else {
      solve_triangle(lu[b], {.upper = true, .transposed = true}, n, x[b], k);
      solve_triangle(lu[b], {.unit = true, .transposed = true}, n, x[b], k);
      for (int64_t i = n; i-- > 0;) exchange_row(i);
    }
  }
  return left ? write_matrices(out, x) : write_transposed(out, x);
}

// A; check_errors -> inverse, info
TENON_HOST_FUNCTION(linalg_inv) {
  (void)lo, (void)hi;
  bool check = Params(*call).flag();
  if (!is_square(call->inputs[0])) return TENON_KERNEL_ARITHMETIC;
  LuFactors f(*call, call->inputs[0]);
  Matrices out = zero_matrices(*call, f.lu.batch, f.lu.rows, f.lu.rows);
  int64_t n = f.lu.rows, *order = work<int64_t>(*call, n);
  if (!f || !out || !order) return TENON_KERNEL_MEMORY;
  for (int64_t b = 0; b < f.lu.batch; ++b) {
    for (int64_t i = 0; i < n; ++i) order[i] = i;
    for (int64_t i = 0; i < n; ++i) exchange(order[i], order[f.pivots[b * n + i] - 1]);
    for (int64_t i = 0; i < n; ++i) out[b][i * n + order[i]] = 1;
    solve_triangle(f.lu[b], {.unit = true}, n, out[b], n);
    solve_triangle(f.lu[b], {.upper = true}, n, out[b], n);
  }
  if (int status = write_info(*call, call->results[1], f.info, f.lu.batch, check)) return status;
  return write_matrices(call->results[0], out);
}

// A; upper, check_errors -> L, info
TENON_HOST_FUNCTION(linalg_cholesky) {
  (void)lo, (void)hi;
  Params params(*call);
  bool upper = params.flag(), check = params.flag();
  if (!is_square(call->inputs[0])) return TENON_KERNEL_ARITHMETIC;
  Matrices a = matrices(*call, upper ? transposed(call->inputs[0]) : call->inputs[0]);
  int64_t* info = work<int64_t>(*call, a.batch);
  if (!a || !info) return TENON_KERNEL_MEMORY;
  for (int64_t b = 0; b < a.batch; ++b) info[b] = factor_cholesky(a[b], a.rows);
  if (int status = write_info(*call, call->results[1], info, a.batch, check)) return status;
  return upper ? write_transposed(call->results[0], a) : write_matrices(call->results[0], a);
}

// A, B; upper, left, unitriangular
TENON_HOST_FUNCTION(linalg_solve_triangular) {
  (void)lo, (void)hi;
  Params params(*call);
  bool upper = params.flag(), left = params.flag(), unit = params.flag();
  tenon_tensor& out = call->results[0];
  Matrices a = matrices_over(*call, call->inputs[0], out);
  Matrices b = matrices_over(*call, left ? call->inputs[1] : transposed(call->inputs[1]), out);
  if (!a || !b) return TENON_KERNEL_MEMORY;
  if (a.rows != a.columns || b.rows != a.rows) return TENON_KERNEL_ARITHMETIC;
  for (int64_t i = 0; i < a.batch; ++i)
    solve_triangle(a[i], {.upper = upper, .unit = unit, .transposed = !left}, a.rows, b[i], b.columns);
  return left ? write_matrices(out, b) : write_transposed(out, b);
}

// A; mode -> Q, R
TENON_HOST_FUNCTION(linalg_qr) {
  (void)lo, (void)hi;
  Params::Text mode = Params(*call).text();
  Matrices a = matrices(*call, call->inputs[0]);
  int64_t m = a.rows, n = a.columns, few = least(m, n), k = mode.is("complete") ? m : few;
  Matrices q = zero_matrices(*call, a.batch, m, k), r = zero_matrices(*call, a.batch, k, n);
  double *tau = work<double>(*call, few), *spare = work<double>(*call, greatest(n, k));
  if (!a || !q || !r || !tau || !spare) return TENON_KERNEL_MEMORY;
  for (int64_t b = 0; b < a.batch; ++b) {
    factor_qr(a[b], m, n, tau, spare);
    for (int64_t i = 0; i < k; ++i) {
      q[b][i * k + i] = 1;
      for (int64_t j = i; j < n; ++j) r[b][i * n + j] = a[b][i * n + j];
    }
    apply_reflectors(a[b], m, n, tau, few, false, q[b], k, spare);
  }
  if (int status = mode.is("r") ? 0 : write_matrices(call->results[0], q)) return status;
  return write_matrices(call->results[1], r);
}

// A -> a, tau
TENON_HOST_FUNCTION(linalg_geqrf) {
  (void)lo, (void)hi;
  Matrices a = matrices(*call, call->inputs[0]);
  int64_t k = least(a.rows, a.columns);
  double *tau = work<double>(*call, a.batch * k), *spare = work<double>(*call, a.columns);
  if (!a || !tau || !spare) return TENON_KERNEL_MEMORY;
  for (int64_t b = 0; b < a.batch; ++b) factor_qr(a[b], a.rows, a.columns, tau + b * k, spare);
  if (count(call->results[1]) != a.batch * k) return TENON_KERNEL_ARITHMETIC;
  write(call->results[1], tau);
  return write_matrices(call->results[0], a);
}

// reflectors, tau
TENON_HOST_FUNCTION(linalg_householder_product) {
  (void)lo, (void)hi;
  const tenon_tensor& scales = call->inputs[1];
  Matrices a = matrices(*call, call->inputs[0]), out = zero_matrices(*call, a.batch, a.rows, a.columns);
  int64_t k = scales.sizes[scales.rank - 1];
  double *tau = elements<double>(*call, scales), *spare = work<double>(*call, a.columns);
  if (!a || !out || !tau || !spare) return TENON_KERNEL_MEMORY;
  if (a.columns > a.rows || k > a.columns || count(scales) != a.batch * k) return TENON_KERNEL_ARITHMETIC;
  for (int64_t b = 0; b < a.batch; ++b) {
    for (int64_t i = 0; i < a.columns; ++i) out[b][i * a.columns + i] = 1;
    apply_reflectors(a[b], a.rows, a.columns, tau + b * k, k, false, out[b], a.columns, spare);
  }
  return write_matrices(call->results[0], out);
}

// reflectors, tau, matrices; left, transpose
TENON_HOST_FUNCTION(linalg_ormqr) {
  (void)lo, (void)hi;
  Params params(*call);
  bool left = params.flag(), back = params.flag() != !left;
  const tenon_tensor& scales = call->inputs[1];
  Matrices a = matrices(*call, call->inputs[0]);
  Matrices c = matrices(*call, left ? call->inputs[2] : transposed(call->inputs[2]));
  int64_t k = scales.sizes[scales.rank - 1];
  double *tau = elements<double>(*call, scales), *spare = work<double>(*call, c.columns);
  if (!a || !c || !tau || !spare) return TENON_KERNEL_MEMORY;
  if (k > a.columns || k > a.rows || count(scales) != a.batch * k || c.rows != a.rows || c.batch != a.batch)
    return TENON_KERNEL_ARITHMETIC;
  for (int64_t b = 0; b < a.batch; ++b)
    apply_reflectors(a[b], a.rows, a.columns, tau + b * k, k, back, c[b], c.columns, spare);
  return left ? write_matrices(call->results[0], c) : write_transposed(call->results[0], c);
}

// A; UPLO, compute_v -> values, vectors
TENON_HOST_FUNCTION(linalg_eigh) {
  (void)lo, (void)hi;
  Params params(*call);
  Params::Text part = params.text();
  bool upper = part.is("U") || part.is("u"), vectors = params.flag();
  if (!is_square(call->inputs[0])) return TENON_KERNEL_ARITHMETIC;
  Matrices a = matrices(*call, call->inputs[0]);
  double *values = work<double>(*call, a.batch * a.rows), *spare = work<double>(*call, eigen_spare(a.rows));
  if (!a || !values || !spare) return TENON_KERNEL_MEMORY;
  for (int64_t b = 0; b < a.batch; ++b)
    if (!eigen_symmetric(a[b], a.rows, upper, values + b * a.rows, spare)) return refuse(*call, 1, b);
  if (count(call->results[0]) != a.batch * a.rows) return TENON_KERNEL_ARITHMETIC;
  write(call->results[0], values);
  return vectors ? write_matrices(call->results[1], a) : 0;
}

namespace {

/// U, the singular values and Vᵀ of each matrix.
struct SvdFactors {
  Matrices u, vt;
  double* values;
  int64_t k, wrong = -1;  // wrong: a matrix that has none
  SvdFactors(Call& call, const Matrices& a)
      : u(zero_matrices(call, a.batch, a.rows, a.rows)),
        vt(zero_matrices(call, a.batch, a.columns, a.columns)),
        k(least(a.rows, a.columns)) {
    values = work<double>(call, a.batch * k);
    auto* spare = work<double>(call, svd_spare(a.rows, a.columns));
    complete_ = u && vt && values && spare;
    for (int64_t b = 0; complete_ && b < a.batch && wrong < 0; ++b)
      if (!factor_svd(a[b], a.rows, a.columns, u[b], values + b * k, vt[b], spare)) wrong = b;
  }
  explicit operator bool() const { return complete_; }

 private:
  bool complete_;
};

}  // namespace

// A; full_matrices, compute_uv, driver or none -> U, S, Vᵀ
TENON_HOST_FUNCTION(linalg_svd) {
  (void)lo, (void)hi;
  Params params(*call);
  bool full = params.flag(), vectors = params.flag();
  Matrices a = matrices(*call, call->inputs[0]);
  if (!a) return TENON_KERNEL_MEMORY;
  SvdFactors s(*call, a);
  if (!s) return TENON_KERNEL_MEMORY;
  if (s.wrong >= 0) return refuse(*call, 1, s.wrong);
  if (count(call->results[1]) != a.batch * s.k) return TENON_KERNEL_ARITHMETIC;
  write(call->results[1], s.values);
  if (!vectors) return 0;
  if (!full) {  // only what belongs to a value: rows move together
    int64_t m = a.rows, n = a.columns;
    for (int64_t i = 0; i < a.batch * m; ++i)
      for (int64_t j = 0; j < s.k; ++j) s.u.values[i * s.k + j] = s.u.values[i * m + j];
    for (int64_t b = 0; b < a.batch; ++b)
      for (int64_t i = 0; i < s.k * n; ++i) s.vt.values[b * s.k * n + i] = s.vt.values[b * n * n + i];
    s.u.columns = s.vt.rows = s.k;
  }
  if (int status = write_matrices(call->results[0], s.u)) return status;
  return write_matrices(call->results[2], s.vt);
}

// A, B; rcond or none, driver or none -> solution, residuals, rank, singular values
TENON_HOST_FUNCTION(linalg_lstsq) {
  (void)lo, (void)hi;
  const tenon_tensor& left = call->inputs[0];
  Params params(*call);
  bool given = params.present();
  Matrices a = matrices(*call, left);
  double relative =
      given ? params.real()
            : (left.dtype == TENON_F32 ? 0x1p-23 : 0x1p-52) * static_cast<double>(greatest(a.rows, a.columns));
  bool full_rank = false, has_ranks = true, has_values = false;
  if (params.present()) {
    Params::Text driver = params.text();
    full_rank = driver.is("gels");
    has_ranks = !full_rank;
    has_values = driver.is("gelsd") || driver.is("gelss");
  }
  const tenon_tensor& right = call->inputs[1];
  int64_t columns = right.rank == left.rank ? columns_of(right) : 1;
  Matrices b{elements<double>(*call, right), a.batch, a.rows, columns};
  if (count(right) != a.batch * a.rows * columns) return TENON_KERNEL_ARITHMETIC;
  Matrices kept{work<double>(*call, a.batch * a.rows * a.columns), a.batch, a.rows, a.columns};
  Matrices x = zero_matrices(*call, a.batch, a.columns, columns);
  int64_t* ranks = work<int64_t>(*call, a.batch);
  double* residuals = work<double>(*call, a.batch * columns);
  if (!a || !b || !kept || !x || !ranks || !residuals) return TENON_KERNEL_MEMORY;
  for (int64_t i = 0; i < a.batch * a.rows * a.columns; ++i) kept.values[i] = a.values[i];
  SvdFactors s(*call, a);
  if (!s) return TENON_KERNEL_MEMORY;
  if (s.wrong >= 0) return refuse(*call, 1, s.wrong);
  bool all_full = true;
  for (int64_t i = 0; i < a.batch; ++i) {
    int64_t rank = 0;
    for (int64_t j = 0; j < s.k; ++j) {
      double value = s.values[i * s.k + j];
      if (!full_rank && !(value > relative * s.values[i * s.k])) continue;
      ++rank;
      for (int64_t c = 0; c < columns; ++c) {
        double dot = 0;
        for (int64_t r = 0; r < a.rows; ++r) dot += s.u[i][r * a.rows + j] * b[i][r * columns + c];
        for (int64_t r = 0; r < a.columns; ++r) x[i][r * columns + c] += s.vt[i][j * a.columns + r] * dot / value;
      }
    }
    ranks[i] = rank;
    all_full &= rank == a.columns;
    for (int64_t c = 0; c < columns; ++c) {
      double total = 0;
      for (int64_t r = 0; r < a.rows; ++r) {
        double d = b[i][r * columns + c];
        for (int64_t j = 0; j < a.columns; ++j) d -= kept[i][r * a.columns + j] * x[i][j * columns + c];
        total += d * d;
      }
      residuals[i * columns + c] = total;
    }
  }
  if (count(call->results[1]) != 0) {
    int64_t none = 0;
    if (count(call->results[1]) != a.batch * columns) return TENON_KERNEL_ARITHMETIC;
    if (all_full) write(call->results[1], residuals);
    else if (int status = call->allocate(call, 1, 1, &none)) return status;
  }
  if (has_ranks) {
    if (count(call->results[2]) != a.batch) return TENON_KERNEL_ARITHMETIC;
    write(call->results[2], ranks);
  }
  if (has_values) {
    if (count(call->results[3]) != a.batch * s.k) return TENON_KERNEL_ARITHMETIC;
    write(call->results[3], s.values);
  }
  return write_matrices(call->results[0], x);
}

TENON_HOST_FUNCTION(linalg_matrix_exp) {
  (void)lo, (void)hi;
  if (!is_square(call->inputs[0])) return TENON_KERNEL_ARITHMETIC;
  Matrices a = matrices(*call, call->inputs[0]);
  double* spare = work<double>(*call, 4 * a.rows * a.rows);
  if (!a || !spare) return TENON_KERNEL_MEMORY;
  for (int64_t b = 0; b < a.batch; ++b) exponential(a[b], a.rows, spare);
  return write_matrices(call->results[0], a);
}

// info; api_name, is_matrix
TENON_HOST_FUNCTION(linalg_check_errors) {
  (void)lo, (void)hi;
  const tenon_tensor& info = call->inputs[0];
  Walk at(info);
  for (int64_t i = 0, n = count(info); i < n; ++i, at.next())
    if (int64_t error = load<int64_t>(info.data, info.dtype, at.offset())) return refuse(*call, 1, i, error);
  return 0;
}

}  // namespace tenon::kernels

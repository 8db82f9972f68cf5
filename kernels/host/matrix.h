// Factorizations of small and middle-sized matrices in double precision, row-major without gaps. Reflectors, pivots and
// signs follow LAPACK's conventions, so results are the ones PyTorch gives on a CPU.
// `spare` is memory to work in.
#pragma once
#include <stdint.h>

#pragma GCC visibility push(hidden)  // no way round by tables of addresses
namespace tenon::kernels {

void exchange_rows(double* a, double* b, int64_t n);
/// a = P L U in place, rows exchanged: row i with row pivots[i] - 1. Gives 0, or the first i (from 1) with U[i, i] = 0.
int64_t factor_lu(double* a, int64_t m, int64_t n, int32_t* pivots);
/// The lower factor of a = L Lᵀ in place, from the lower triangle; above it is zero. Gives 0, or the order of the first
/// leading minor that is not positive.
int64_t factor_cholesky(double* a, int64_t n);

struct Triangle {
  bool upper = false, unit = false, transposed = false;
};
/// b = t⁻¹ b for a triangle of a[n, n] (the rest is not read) and b[n, k].
void solve_triangle(const double* a, Triangle t, int64_t n, double* b, int64_t k);

/// a = Q R: R on and above the diagonal, the reflectors I - tau v vᵀ below it, the leading 1 of v left out. spare[n].
void factor_qr(double* a, int64_t m, int64_t n, double* tau, double* spare);
/// c[m, k] = Q c or Qᵀ c for the product Q of `count` reflectors in the columns of a[m, columns]. spare[k].
void apply_reflectors(const double* a, int64_t m, int64_t columns, const double* tau, int64_t count, bool transposed,
                      double* c, int64_t k, double* spare);

/// Eigenvalues, ascending, of a symmetric a[n, n] of which one triangle is read; a becomes the eigenvectors, in
/// columns. False where the iteration does not end (NaN).
inline int64_t eigen_spare(int64_t n) { return 2 * n * n + 3 * n; }
bool eigen_symmetric(double* a, int64_t n, bool upper, double* values, double* spare);

/// a = U diag(s) Vᵀ: u[m, m], s descending, vt[n, n]. a is lost. False where the iteration does not end (NaN).
inline int64_t svd_spare(int64_t m, int64_t n) {
  int64_t k = m < n ? m : n;
  return 2 * k * k + 6 * (m + n) + 8;
}
bool factor_svd(double* a, int64_t m, int64_t n, double* u, double* s, double* vt, double* spare);

/// exp(a) in place. spare[4 n n].
void exponential(double* a, int64_t n, double* spare);

/// c[m, n] = a[m, k] b[k, n]
void multiply(const double* a, const double* b, double* c, int64_t m, int64_t k, int64_t n);

}  // namespace tenon::kernels
#pragma GCC visibility pop

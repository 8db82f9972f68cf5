// Factorizations of small and middle-sized matrices in double precision, row-major without gaps. Reflectors, pivots and
// signs follow LAPACK's conventions, so results are the ones PyTorch gives on a CPU.
#pragma once
#include <cstdint>
#include <vector>

namespace tenon::templates {

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

/// a = Q R: R on and above the diagonal, the reflectors I - tau v vᵀ below it, the leading 1 of v left out.
void factor_qr(double* a, int64_t m, int64_t n, double* tau);
/// c[m, k] = Q c or Qᵀ c for the product Q of `count` reflectors in the columns of a[m, columns].
void apply_reflectors(const double* a, int64_t m, int64_t columns, const double* tau, int64_t count, bool transposed,
                      double* c, int64_t k);

/// Eigenvalues, ascending, of a symmetric a[n, n] of which one triangle is read; a becomes the eigenvectors, in
/// columns. False where the iteration does not end (NaN).
bool eigen_symmetric(double* a, int64_t n, bool upper, double* values);

/// a = U diag(s) Vᵀ: u[m, m], s descending, vt[n, n]. a is lost. False where the iteration does not end (NaN).
bool factor_svd(double* a, int64_t m, int64_t n, double* u, double* s, double* vt);

/// exp(a) in place.
void exponential(double* a, int64_t n);

/// c[m, n] = a[m, k] b[k, n]
void multiply(const double* a, const double* b, double* c, int64_t m, int64_t k, int64_t n);
void transpose(const double* a, int64_t m, int64_t n, double* out);

}  // namespace tenon::templates

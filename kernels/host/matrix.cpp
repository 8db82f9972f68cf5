#include "kernels/host/matrix.h"

#include "kernels/host/numbers.h"

namespace tenon::kernels {

void exchange_rows(double* a, double* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) exchange(a[i], b[i]);
}

int64_t factor_lu(double* a, int64_t m, int64_t n, int32_t* pivots) {
  int64_t info = 0;
  for (int64_t j = 0; j < least(m, n); ++j) {
    int64_t best = j;
    for (int64_t i = j + 1; i < m; ++i)
      if (abs(a[i * n + j]) > abs(a[best * n + j])) best = i;
    pivots[j] = static_cast<int32_t>(best + 1);
    if (a[best * n + j] == 0) {
      if (!info) info = j + 1;
      continue;
    }
    if (best != j) exchange_rows(a + j * n, a + best * n, n);
    for (int64_t i = j + 1; i < m; ++i) {
      double f = a[i * n + j] /= a[j * n + j];
      if (f == 0) continue;
      for (int64_t k = j + 1; k < n; ++k) a[i * n + k] -= f * a[j * n + k];
    }
  }
  return info;
}

int64_t factor_cholesky(double* a, int64_t n) {
  int64_t info = 0;
  for (int64_t j = 0; j < n && !info; ++j) {
    double d = a[j * n + j];
    for (int64_t k = 0; k < j; ++k) d -= a[j * n + k] * a[j * n + k];
    a[j * n + j] = d;
    if (!(d > 0)) {
      info = j + 1;
      break;
    }
    d = a[j * n + j] = sqrt(d);
    for (int64_t i = j + 1; i < n; ++i) {
      double s = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) s -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = s / d;
    }
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) a[i * n + j] = 0;
  return info;
}

void solve_triangle(const double* a, Triangle t, int64_t n, double* b, int64_t k) {
  auto at = [&](int64_t i, int64_t j) { return t.transposed ? a[j * n + i] : a[i * n + j]; };
  bool backward = t.upper != t.transposed;
  for (int64_t step = 0; step < n; ++step) {
    int64_t i = backward ? n - 1 - step : step;
    double* row = b + i * k;
    for (int64_t other = 0; other < step; ++other) {
      int64_t j = backward ? n - 1 - other : other;
      double f = at(i, j);
      for (int64_t c = 0; c < k; ++c) row[c] -= f * b[j * k + c];
    }
    if (!t.unit)
      for (int64_t c = 0; c < k; ++c) row[c] /= at(i, i);
  }
}

namespace {

// The reflector that leaves x[0] of x, `stride` apart, nonzero only: x becomes (beta, v[1..]). Gives tau.
double make_reflector(double* x, int64_t n, int64_t stride) {
  double scale = 0, norm = 0;
  for (int64_t i = 1; i < n; ++i) scale = greatest(scale, abs(x[i * stride]));
  if (scale == 0) return 0;
  for (int64_t i = 1; i < n; ++i) norm += (x[i * stride] / scale) * (x[i * stride] / scale);
  double alpha = x[0], beta = -copysign(hypot(alpha, scale * sqrt(norm)), alpha);
  for (int64_t i = 1; i < n; ++i) x[i * stride] /= alpha - beta;
  x[0] = beta;
  return (beta - alpha) / beta;
}

// c = (I - tau v vᵀ) c for v = (1, x[stride], x[2 stride], ...) over the rows of c[n, k], `row` apart; sums[k].
void reflect_rows(const double* x, int64_t n, int64_t stride, double tau, double* c, int64_t k, int64_t row,
                  double* sums) {
  if (tau == 0 || k <= 0) return;
  for (int64_t j = 0; j < k; ++j) sums[j] = c[j];
  for (int64_t i = 1; i < n; ++i)
    for (int64_t j = 0; j < k; ++j) sums[j] += x[i * stride] * c[i * row + j];
  for (int64_t i = 0; i < n; ++i) {
    double f = tau * (i == 0 ? 1 : x[i * stride]);
    for (int64_t j = 0; j < k; ++j) c[i * row + j] -= f * sums[j];
  }
}

// c = c (I - tau v vᵀ) over the columns of c[m, n].
void reflect_columns(const double* x, int64_t n, int64_t stride, double tau, double* c, int64_t m, int64_t row) {
  if (tau == 0) return;
  for (int64_t i = 0; i < m; ++i) {
    double* r = c + i * row;
    double sum = r[0];
    for (int64_t j = 1; j < n; ++j) sum += x[j * stride] * r[j];
    sum *= tau;
    r[0] -= sum;
    for (int64_t j = 1; j < n; ++j) r[j] -= sum * x[j * stride];
  }
}

void identity(double* a, int64_t n) {
  for (int64_t i = 0; i < n * n; ++i) a[i] = 0;
  for (int64_t i = 0; i < n; ++i) a[i * n + i] = 1;
}

}  // namespace

void factor_qr(double* a, int64_t m, int64_t n, double* tau, double* spare) {
  for (int64_t j = 0; j < least(m, n); ++j) {
    tau[j] = make_reflector(a + j * n + j, m - j, n);
    reflect_rows(a + j * n + j, m - j, n, tau[j], a + j * n + j + 1, n - j - 1, n, spare);
  }
}

void apply_reflectors(const double* a, int64_t m, int64_t columns, const double* tau, int64_t count, bool transposed,
                      double* c, int64_t k, double* spare) {
  for (int64_t step = 0; step < count; ++step) {
    int64_t j = transposed ? step : count - 1 - step;
    reflect_rows(a + j * columns + j, m - j, columns, tau[j], c + j * k, k, k, spare);
  }
}

void tridiagonal(double* a, int64_t n, bool upper, double* d, double* e, double* q, double* spare) {
  double *tau = spare, *w = tau + n, *reflectors = w + n;  // row k of the last: reflector k
  for (int64_t i = 0; i < n; ++i)                          // both triangles
    for (int64_t j = 0; j < i; ++j) (upper ? a[i * n + j] : a[j * n + i]) = upper ? a[j * n + i] : a[i * n + j];
  identity(q, n);
  // Lower: column after column from the left, below the diagonal. Upper: the same seen from the other corner.
  auto at = [&](int64_t i, int64_t j) -> double& { return upper ? a[(n - 1 - i) * n + n - 1 - j] : a[i * n + j]; };
  auto turned = [&](int64_t i) { return upper ? n - 1 - i : i; };
  for (int64_t k = 0; k + 1 < n; ++k) {
    double* v = reflectors + k * n;
    for (int64_t i = k + 1; i < n; ++i) v[i - k - 1] = at(i, k);
    double t = make_reflector(v, n - k - 1, 1);
    tau[k] = t;
    e[upper ? n - 2 - k : k] = v[0];
    v[0] = 1;
    double dot = 0;
    for (int64_t i = k + 1; i < n; ++i) {
      double s = 0;
      for (int64_t j = k + 1; j < n; ++j) s += at(i, j) * v[j - k - 1];
      w[i] = t * s;
      dot += w[i] * v[i - k - 1];
    }
    for (int64_t i = k + 1; i < n; ++i) w[i] -= 0.5 * t * dot * v[i - k - 1];
    for (int64_t i = k + 1; i < n; ++i)
      for (int64_t j = k + 1; j < n; ++j) at(i, j) -= v[i - k - 1] * w[j] + w[i] * v[j - k - 1];
  }
  for (int64_t i = 0; i < n; ++i) d[i] = a[i * n + i];
  for (int64_t k = n - 2; k >= 0; --k) {  // q = H0 H1 ...
    const double* v = reflectors + k * n;
    for (int64_t j = 0; j < n; ++j) {
      double s = 0;
      for (int64_t i = k + 1; i < n; ++i) s += v[i - k - 1] * q[turned(i) * n + j];
      s *= tau[k];
      for (int64_t i = k + 1; i < n; ++i) q[turned(i) * n + j] -= s * v[i - k - 1];
    }
  }
}

void bidiagonal(double* a, int64_t m, int64_t n, double* d, double* e, double* u, double* vt, double* spare) {
  bool tall = m >= n;
  int64_t k = least(m, n);
  double *left = spare, *right = left + k, *sums = right + k;
  for (int64_t i = 0; i < k; ++i) {
    auto column = [&] {
      int64_t r = tall ? i : i + 1;
      if (r >= m) return;
      left[i] = make_reflector(a + r * n + i, m - r, n);
      reflect_rows(a + r * n + i, m - r, n, left[i], a + r * n + i + 1, n - i - 1, n, sums);
    };
    auto row = [&] {
      int64_t c = tall ? i + 1 : i;
      if (c >= n) return;
      right[i] = make_reflector(a + i * n + c, n - c, 1);
      reflect_columns(a + i * n + c, n - c, 1, right[i], a + (i + 1) * n + c, m - i - 1, n);
    };
    if (tall) column(), row();
    else row(), column();
    d[i] = a[i * n + i];
    if (i + 1 < k) e[i] = tall ? a[i * n + i + 1] : a[(i + 1) * n + i];
  }
  identity(u, m);
  identity(vt, n);
  for (int64_t i = k; i-- > 0;) {
    int64_t r = tall ? i : i + 1, c = tall ? i + 1 : i;
    if (r < m) reflect_rows(a + r * n + i, m - r, n, left[i], u + r * m, m, m, sums);
    if (c < n) reflect_columns(a + i * n + c, n - c, 1, right[i], vt + c, n, n);
  }
}

void multiply(const double* a, const double* b, double* c, int64_t m, int64_t k, int64_t n) {
  for (int64_t i = 0; i < m * n; ++i) c[i] = 0;
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) {
      double f = a[i * k + p];
      for (int64_t j = 0; j < n; ++j) c[i * n + j] += f * b[p * n + j];
    }
}

// Halved until its norm is below 1/2, a Taylor polynomial of a degree that reaches double precision there, squared
// back.
void exponential(double* a, int64_t n, double* spare) {
  int64_t size = n * n;
  double norm = 0;
  for (int64_t i = 0; i < n; ++i) {
    double row = 0;
    for (int64_t j = 0; j < n; ++j) row += abs(a[i * n + j]);
    norm = greatest(norm, row);
    if (is_nan(row)) norm = row;
  }
  if (!is_finite(norm)) {
    for (int64_t i = 0; i < size; ++i) a[i] = __builtin_nan("");
    return;
  }
  int64_t halvings = 0;
  if (norm > 0.5) {
    split(norm, halvings);
    ++halvings;
  }
  double *x = spare, *term = x + size, *next = term + size, *sum = next + size;
  for (int64_t i = 0; i < size; ++i) x[i] = scaled(a[i], -halvings);
  identity(sum, n);
  identity(term, n);
  for (int k = 1; k <= 18; ++k) {
    multiply(term, x, next, n, n, n);
    for (int64_t i = 0; i < size; ++i) sum[i] += term[i] = next[i] / k;
  }
  for (int64_t k = 0; k < halvings; ++k) {
    multiply(sum, sum, next, n, n, n);
    exchange(sum, next);
  }
  for (int64_t i = 0; i < size; ++i) a[i] = sum[i];
}

}  // namespace tenon::kernels

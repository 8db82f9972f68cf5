// Eigenvalues and singular values: reflectors to a narrow band, then rotations until it is diagonal.
// GCC's vectorizer joins a product with an alternating sum (vfmaddsub) although contraction is off; targets would
// differ.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")
#endif
#include "kernels/host/matrix.h"
#include "kernels/host/numbers.h"

namespace tenon::kernels {

// Of matrix.cpp. a = q t qᵀ with the diagonal d and e beside it; a = u b vt, b upper where m >= n, else lower.
void tridiagonal(double* a, int64_t n, bool upper, double* d, double* e, double* q, double* spare);
void bidiagonal(double* a, int64_t m, int64_t n, double* d, double* e, double* u, double* vt, double* spare);

namespace {

constexpr double eps = 0x1p-53, tiny = 0x1p-1022;

/// A plane rotation: [c s; -s c] (f, g) = (r, 0).
struct Rotation {
  double c = 1, s = 0, r = 0;
  Rotation() = default;
  Rotation(double c, double s) : c(c), s(s) {}
};

// There are two customs for signs, and either library routine keeps to its own: r has the sign of the larger of f and g
// (for eigenvalues), or that of f (for singular values).
Rotation rotation(double f, double g, bool sign_of_larger) {
  Rotation out;
  if (g == 0) {
    out.r = f;
    return out;
  }
  double d = hypot(f, g);
  if (f == 0) out.r = sign_of_larger ? g : d;
  else if (sign_of_larger) out.r = f < 0 && abs(f) > abs(g) ? -d : d;
  else out.r = copysign(d, f);
  out.c = f / out.r;
  out.s = g / out.r;
  return out;
}

// Columns i and j of z[n, n] turned: (x, y) -> (c x + s y, c y - s x).
void turn_columns(double* z, int64_t n, int64_t i, int64_t j, double c, double s) {
  for (int64_t r = 0; r < n; ++r) {
    double x = z[r * n + i], y = z[r * n + j];
    z[r * n + i] = c * x + s * y;
    z[r * n + j] = c * y - s * x;
  }
}
void turn_rows(double* z, int64_t n, int64_t i, int64_t j, double c, double s) {
  for (int64_t k = 0; k < n; ++k) {
    double x = z[i * n + k], y = z[j * n + k];
    z[i * n + k] = c * x + s * y;
    z[j * n + k] = c * y - s * x;
  }
}

// [a b; b d]: the eigenvalue of larger magnitude, the other one, and the first one's eigenvector (c, s).
struct Pair {
  double large, small, c, s;
};
Pair eigen_2x2(double a, double b, double d) {
  double sum = a + d, difference = a - d, root = hypot(difference, 2 * b);
  double big = abs(a) > abs(d) ? a : d, little = abs(a) > abs(d) ? d : a;
  Pair out{};
  int sign = sum < 0 ? -1 : 1;
  if (sum == 0) {
    out.large = 0.5 * root;
    out.small = -0.5 * root;
  } else {
    out.large = 0.5 * (sum + sign * root);
    out.small = big / out.large * little - b / out.large * b;
  }
  int side = difference >= 0 ? 1 : -1;
  double cs = difference + side * root;
  if (abs(cs) > abs(2 * b)) {
    double ct = -2 * b / cs;
    out.s = 1 / sqrt(1 + ct * ct);
    out.c = ct * out.s;
  } else if (b == 0) {
    out.c = 1;
    out.s = 0;
  } else {
    double tn = -cs / (2 * b);
    out.c = 1 / sqrt(1 + tn * tn);
    out.s = tn * out.c;
  }
  if (sign == side) {
    double c = out.c;
    out.c = -out.s;
    out.s = c;
  }
  return out;
}

// Implicit shifts on the block from..to (either order: QL where from < to, else QR) until its first value stands alone.
bool diagonalize_block(double* d, double* e, double* z, int64_t n, int64_t from, int64_t to, int64_t& turns) {
  int64_t step = from < to ? 1 : -1;
  auto between = [&](int64_t i) { return step > 0 ? i : i - 1; };  // e between i and the next
  while (step > 0 ? from <= to : from >= to) {
    int64_t m = from;
    for (; m != to; m += step) {
      double x = e[between(m)];
      if (x * x <= eps * eps * abs(d[m]) * abs(d[m + step]) + tiny) break;
    }
    if (m != to) e[between(m)] = 0;
    if (m == from) {
      from += step;
      continue;
    }
    if (m == from + step) {
      int64_t low = least(m, from);
      Pair p =
          step > 0 ? eigen_2x2(d[from], e[between(from)], d[from + 1]) : eigen_2x2(d[from - 1], e[from - 1], d[from]);
      turn_columns(z, n, low, low + 1, p.c, p.s);
      d[low] = p.large;
      d[low + 1] = p.small;
      e[low] = 0;
      from += 2 * step;
      continue;
    }
    if (--turns < 0) return false;
    double p = d[from], x = e[between(from)], g = (d[from + step] - p) / (2 * x), r = hypot(g, 1.0);
    g = d[m] - p + x / (g + copysign(r, g));
    double s = 1, c = 1;
    p = 0;
    for (int64_t i = m - step;; i -= step) {
      double f = s * e[between(i)], b = c * e[between(i)];
      Rotation t = rotation(g, f, true);
      c = t.c;
      s = t.s;
      if (i != m - step) e[between(i + step)] = t.r;
      g = d[i + step] - p;
      r = (d[i] - g) * s + 2 * c * b;
      p = s * r;
      d[i + step] = g + p;
      g = c * r - b;
      if (step > 0) turn_columns(z, n, i, i + 1, c, -s);
      else turn_columns(z, n, i - 1, i, c, s);
      if (i == from) break;
    }
    d[from] -= p;
    e[between(from)] = g;
  }
  return true;
}

}  // namespace

bool eigen_symmetric(double* a, int64_t n, bool upper, double* values, double* spare) {
  if (n == 0) return true;
  double *e = spare, *z = e + n;
  for (int64_t i = 0; i < n * n; ++i)
    if (!is_finite(a[i])) return false;
  tridiagonal(a, n, upper, values, e, z, z + n * n);
  int64_t turns = 30 * n;
  for (int64_t first = 0; first < n;) {
    int64_t last = first;
    for (; last + 1 < n; ++last) {
      double x = abs(e[last]);
      if (x == 0) break;
      if (x <= sqrt(abs(values[last])) * sqrt(abs(values[last + 1])) * eps) {
        e[last] = 0;
        break;
      }
    }
    bool forward = !(abs(values[last]) < abs(values[first]));
    if (last > first && !diagonalize_block(values, e, z, n, forward ? first : last, forward ? last : first, turns))
      return false;
    bool done = true;
    for (int64_t i = first; i < last; ++i) done &= e[i] == 0;
    if (done) first = last + 1;
  }
  for (int64_t i = 0; i + 1 < n; ++i) {  // ascending, with as few exchanges as there can be
    int64_t lowest = i;
    for (int64_t j = i + 1; j < n; ++j)
      if (values[j] < values[lowest]) lowest = j;
    if (lowest == i) continue;
    exchange(values[i], values[lowest]);
    for (int64_t r = 0; r < n; ++r) exchange(z[r * n + i], z[r * n + lowest]);
  }
  for (int64_t i = 0; i < n * n; ++i) a[i] = z[i];
  return true;
}

namespace {

// The singular values of [f g; 0 h] and the rotations: large with (cl, sl) on the left, (cr, sr) on the right.
struct Svd2x2 {
  double small, large, sr, cr, sl, cl;
};
Svd2x2 svd_2x2(double f, double g, double h) {
  double ft = f, fa = abs(f), ht = h, ha = abs(h);
  int biggest = 1;
  bool swapped = ha > fa;
  if (swapped) {
    biggest = 3;
    exchange(ft, ht);
    exchange(fa, ha);
  }
  double gt = g, ga = abs(g), cl = 1, cr = 1, sl = 0, sr = 0, small = ha, large = fa;
  if (ga != 0) {
    bool plain = true;
    if (ga > fa) {
      biggest = 2;
      if (fa / ga < eps) {
        plain = false;
        large = ga;
        small = ha > 1 ? fa / (ga / ha) : fa / ga * ha;
        cl = 1;
        sl = ht / gt;
        sr = 1;
        cr = ft / gt;
      }
    }
    if (plain) {
      double d = fa - ha, l = d == fa ? 1 : d / fa, m = gt / ft, t = 2 - l, mm = m * m, tt = t * t;
      double s = sqrt(tt + mm), r = l == 0 ? abs(m) : sqrt(l * l + mm), a = 0.5 * (s + r);
      small = ha / a;
      large = fa * a;
      if (mm == 0) t = l == 0 ? copysign(2.0, ft) * copysign(1.0, gt) : gt / copysign(d, ft) + m / t;
      else t = (m / (s + t) + m / (r + l)) * (1 + a);
      l = sqrt(t * t + 4);
      cr = 2 / l;
      sr = t / l;
      cl = (cr + sr * m) / a;
      sl = ht / ft * sr / a;
    }
  }
  Svd2x2 out{};
  if (swapped) out = {0, 0, cl, sl, cr, sr};
  else out = {0, 0, sr, cr, sl, cl};
  double sign = 1;
  if (biggest == 1) sign = copysign(1.0, out.cr) * copysign(1.0, out.cl) * copysign(1.0, f);
  if (biggest == 2) sign = copysign(1.0, out.sr) * copysign(1.0, out.cl) * copysign(1.0, g);
  if (biggest == 3) sign = copysign(1.0, out.sr) * copysign(1.0, out.sl) * copysign(1.0, h);
  out.large = copysign(large, sign);
  out.small = copysign(small, sign * copysign(1.0, f) * copysign(1.0, h));
  return out;
}

double least_2x2(double f, double g, double h) {  // the smaller singular value
  double fa = abs(f), ga = abs(g), ha = abs(h), low = least(fa, ha), high = greatest(fa, ha);
  if (low == 0) return 0;
  if (ga < high) {
    double as = 1 + low / high, at = (high - low) / high, au = (ga / high) * (ga / high);
    return low * (2 / (sqrt(as * as + au) + sqrt(at * at + au)));
  }
  double au = high / ga;
  if (au == 0) return low * high / ga;
  double as = 1 + low / high, at = (high - low) / high;
  return 2 * (low * (1 / (sqrt(1 + as * au * (as * au)) + sqrt(1 + at * au * (at * au))))) * au;
}

// An upper bidiagonal d, e of order k; rotations are applied to the columns of u[m, m] and the rows of vt[n, n].
class Bidiagonal {
 public:
  Bidiagonal(double* d, double* e, int64_t k, double* u, int64_t m, double* vt, int64_t n)
      : d(d), e(e), k(k), u(u), m(m), vt(vt), n(n) {}

  bool diagonalize() {
    double smax = 0;
    for (int64_t i = 0; i < k; ++i) smax = greatest(smax, abs(d[i]));
    for (int64_t i = 0; i + 1 < k; ++i) smax = greatest(smax, abs(e[i]));
    double tolerance = 98.70149282610821 * eps;
    double smin = abs(d[0]), mu = smin;
    for (int64_t i = 1; i < k && smin != 0; ++i) {
      mu = abs(d[i]) * (mu / (mu + abs(e[i - 1])));
      smin = least(smin, mu);
    }
    double threshold =
        greatest(tolerance * smin / sqrt(static_cast<double>(k)), 6.0 * static_cast<double>(k * k) * tiny);
    int64_t turns = 6 * k * k + 100, last = k - 1, old_first = -1, old_last = -1;
    int direction = 0;
    while (last > 0) {
      if (--turns < 0) return false;
      double largest = abs(d[last]);
      int64_t first = last;
      bool split = false;
      for (int64_t i = last - 1; i >= 0; --i) {
        if (abs(e[i]) <= threshold) {
          e[i] = 0;
          split = true;
          first = i + 1;
          break;
        }
        largest = greatest(largest, greatest(abs(d[i]), abs(e[i])));
        first = i;
      }
      if (split && first == last) {
        --last;
        continue;
      }
      if (first == last - 1) {
        Svd2x2 p = svd_2x2(d[first], e[first], d[last]);
        d[first] = p.large;
        e[first] = 0;
        d[last] = p.small;
        turn_rows(vt, n, first, last, p.cr, p.sr);
        turn_columns(u, m, first, last, p.cl, p.sl);
        last -= 2;
        continue;
      }
      if (first > old_last || last < old_first || direction == 0) direction = abs(d[first]) >= abs(d[last]) ? 1 : 2;
      double smallest = 0;
      if (!negligible(first, last, direction, tolerance, smallest)) continue;
      old_first = first;
      old_last = last;
      double shift = 0;
      if (static_cast<double>(k) * tolerance * (smallest / largest) > greatest(eps, 0.01 * tolerance)) {
        double at = direction == 1 ? abs(d[first]) : abs(d[last]);
        shift =
            direction == 1 ? least_2x2(d[last - 1], e[last - 1], d[last]) : least_2x2(d[first], e[first], d[first + 1]);
        if (at > 0 && (shift / at) * (shift / at) < eps) shift = 0;
      }
      if (direction == 1) shift == 0 ? down(first, last) : down(first, last, shift);
      else shift == 0 ? up(first, last) : up(first, last, shift);
      double& edge = direction == 1 ? e[last - 1] : e[first];
      if (abs(edge) <= threshold) edge = 0;
    }
    return true;
  }

 private:
  // Drops what does not matter at the ends of a block. False where something was dropped; else estimates the
  // smallest value.
  bool negligible(int64_t first, int64_t last, int direction, double tolerance, double& smallest) {
    if (direction == 1) {
      if (abs(e[last - 1]) <= tolerance * abs(d[last])) return e[last - 1] = 0, false;
      double mu = smallest = abs(d[first]);
      for (int64_t i = first; i < last; ++i) {
        if (abs(e[i]) <= tolerance * mu) return e[i] = 0, false;
        mu = abs(d[i + 1]) * (mu / (mu + abs(e[i])));
        smallest = least(smallest, mu);
      }
    } else {
      if (abs(e[first]) <= tolerance * abs(d[first])) return e[first] = 0, false;
      double mu = smallest = abs(d[last]);
      for (int64_t i = last - 1; i >= first; --i) {
        if (abs(e[i]) <= tolerance * mu) return e[i] = 0, false;
        mu = abs(d[i]) * (mu / (mu + abs(e[i])));
        smallest = least(smallest, mu);
      }
    }
    return true;
  }

  void down(int64_t first, int64_t last) {  // without a shift: small values keep their precision
    Rotation right, left;
    for (int64_t i = first; i < last; ++i) {
      right = rotation(d[i] * right.c, e[i], false);
      if (i > first) e[i - 1] = left.s * right.r;
      left = rotation(left.c * right.r, d[i + 1] * right.s, false);
      d[i] = left.r;
      turn_rows(vt, n, i, i + 1, right.c, right.s);
      turn_columns(u, m, i, i + 1, left.c, left.s);
    }
    double h = d[last] * right.c;
    d[last] = h * left.c;
    e[last - 1] = h * left.s;
  }
  void up(int64_t first, int64_t last) {
    Rotation left, right;
    for (int64_t i = last; i > first; --i) {
      left = rotation(d[i] * left.c, e[i - 1], false);
      if (i < last) e[i] = right.s * left.r;
      right = rotation(right.c * left.r, d[i - 1] * left.s, false);
      d[i] = right.r;
      turn_columns(u, m, i - 1, i, left.c, -left.s);
      turn_rows(vt, n, i - 1, i, right.c, -right.s);
    }
    double h = d[first] * left.c;
    d[first] = h * right.c;
    e[first] = h * right.s;
  }
  void down(int64_t first, int64_t last, double shift) {
    double f = (abs(d[first]) - shift) * (copysign(1.0, d[first]) + shift / d[first]), g = e[first];
    for (int64_t i = first; i < last; ++i) {
      Rotation r = rotation(f, g, false);
      if (i > first) e[i - 1] = r.r;
      f = r.c * d[i] + r.s * e[i];
      e[i] = r.c * e[i] - r.s * d[i];
      g = r.s * d[i + 1];
      d[i + 1] *= r.c;
      Rotation l = rotation(f, g, false);
      d[i] = l.r;
      f = l.c * e[i] + l.s * d[i + 1];
      d[i + 1] = l.c * d[i + 1] - l.s * e[i];
      if (i + 1 < last) {
        g = l.s * e[i + 1];
        e[i + 1] *= l.c;
      }
      turn_rows(vt, n, i, i + 1, r.c, r.s);
      turn_columns(u, m, i, i + 1, l.c, l.s);
    }
    e[last - 1] = f;
  }
  void up(int64_t first, int64_t last, double shift) {
    double f = (abs(d[last]) - shift) * (copysign(1.0, d[last]) + shift / d[last]), g = e[last - 1];
    for (int64_t i = last; i > first; --i) {
      Rotation r = rotation(f, g, false);
      if (i < last) e[i] = r.r;
      f = r.c * d[i] + r.s * e[i - 1];
      e[i - 1] = r.c * e[i - 1] - r.s * d[i];
      g = r.s * d[i - 1];
      d[i - 1] *= r.c;
      Rotation l = rotation(f, g, false);
      d[i] = l.r;
      f = l.c * e[i - 1] + l.s * d[i - 1];
      d[i - 1] = l.c * d[i - 1] - l.s * e[i - 1];
      if (i > first + 1) {
        g = l.s * e[i - 2];
        e[i - 2] *= l.c;
      }
      turn_columns(u, m, i - 1, i, r.c, -r.s);
      turn_rows(vt, n, i - 1, i, l.c, -l.s);
    }
    e[first] = f;
  }

  double *d, *e;
  int64_t k;
  double* u;
  int64_t m;
  double* vt;
  int64_t n;
};

}  // namespace

static bool svd_of_band(double* a, int64_t m, int64_t n, double* u, double* s, double* vt, double* spare) {
  int64_t k = least(m, n);
  double* e = spare;
  bidiagonal(a, m, n, s, e, u, vt, e + k + 1);
  if (k == 0) return true;
  if (m < n)  // lower: turned into an upper one from the left
    for (int64_t i = 0; i + 1 < k; ++i) {
      Rotation r = rotation(s[i], e[i], false);
      s[i] = r.r;
      e[i] = r.s * s[i + 1];
      s[i + 1] *= r.c;
      turn_columns(u, m, i, i + 1, r.c, r.s);
    }
  if (!Bidiagonal(s, e, k, u, m, vt, n).diagonalize()) return false;
  for (int64_t i = 0; i < k; ++i) {
    if (s[i] == 0) s[i] = 0;
    if (copysign(1.0, s[i]) > 0) continue;
    s[i] = -s[i];
    if (k == 1)  // the custom for a single value
      for (int64_t r = 0; r < m; ++r) u[r * m] = -u[r * m];
    else
      for (int64_t j = 0; j < n; ++j) vt[i * n + j] = -vt[i * n + j];
  }
  for (int64_t i = 0; i + 1 < k; ++i) {
    int64_t lowest = 0, end = k - 1 - i;  // the least of the rest goes to its end
    for (int64_t j = 1; j <= end; ++j)
      if (s[j] <= s[lowest]) lowest = j;
    if (lowest == end) continue;
    exchange(s[lowest], s[end]);
    for (int64_t j = 0; j < n; ++j) exchange(vt[lowest * n + j], vt[end * n + j]);
    for (int64_t r = 0; r < m; ++r) exchange(u[r * m + lowest], u[r * m + end]);
  }
  return true;
}

// x put into the upper left corner of a unit matrix of order n.
static void enlarge(const double* x, int64_t k, double* out, int64_t n) {
  for (int64_t i = 0; i < n * n; ++i) out[i] = 0;
  for (int64_t i = 0; i < n; ++i) out[i * n + i] = 1;
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < k; ++j) out[i * n + j] = x[i * k + j];
}

bool factor_svd(double* a, int64_t m, int64_t n, double* u, double* s, double* vt, double* spare) {
  for (int64_t i = 0; i < m * n; ++i)
    if (!is_finite(a[i])) return false;
  if (m <= n || m < n * 11 / 6 || n == 0) return svd_of_band(a, m, n, u, s, vt, spare);
  // Many more rows than columns: the triangle of its QR has the same values.
  double *tau = spare, *triangle = tau + n, *left = triangle + n * n, *rest = left + n * n;
  factor_qr(a, m, n, tau, rest);
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) triangle[i * n + j] = j < i ? 0 : a[i * n + j];
  if (!svd_of_band(triangle, n, n, left, s, vt, rest)) return false;
  enlarge(left, n, u, m);
  apply_reflectors(a, m, n, tau, n, false, u, m, rest);
  return true;
}

}  // namespace tenon::kernels

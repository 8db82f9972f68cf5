#include "tenon/ops/special_functions.h"

#include <math.h>

#include <cmath>
#include <limits>

#include "tenon/base/saturate.h"

namespace tenon::special {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

// exp(-x) I_n(x) for large x; the series in 1/x stops where its terms grow.
double large_ie(double n, double x) {
  double sum = 1, term = 1, m = 4 * n * n;
  for (int k = 1; k < 30; ++k) {
    double next = -term * (m - (2 * k - 1) * (2 * k - 1)) / (8 * k * x);
    if (std::fabs(next) > std::fabs(term)) break;
    sum += term = next;
  }
  return sum / std::sqrt(2 * M_PI * x);
}

double ie(double n, double x) { return x > 100 ? large_ie(n, x) : std::exp(-x) * std::cyl_bessel_i(n, x); }

double ke(double n, double x) {
  if (!(x >= 0)) return nan;
  if (x == 0) return inf;
  if (x < 100) return std::exp(x) * std::cyl_bessel_k(n, x);
  double sum = 1, term = 1, m = 4 * n * n;
  for (int k = 1; k < 30; ++k) {
    double next = term * (m - (2 * k - 1) * (2 * k - 1)) / (8 * k * x);
    if (std::fabs(next) > std::fabs(term)) break;
    sum += term = next;
  }
  return sum * std::sqrt(M_PI / (2 * x));
}

// p(k + 1) from p(k) and p(k - 1); below 0 the polynomials are 0.
template <class Next>
double recurrence(double n, double first, double second, Next next) {
  int64_t degree = n < 0x1p62 ? saturated(n) : -1;  // no polynomial is of such a degree
  if (degree < 0) return 0;
  if (degree == 0) return first;
  double before = first, now = second;
  for (int64_t k = 1; k < degree && !std::isnan(now); ++k) {
    double after = next(static_cast<double>(k), now, before);
    before = now;
    now = after;
  }
  return now;
}

}  // namespace

double i0(double x) {
  return std::isnan(x) ? x : std::fabs(x) > 700 ? std::exp(std::fabs(x)) * i0e(x) : std::cyl_bessel_i(0, std::fabs(x));
}
double i0e(double x) { return std::isnan(x) ? x : ie(0, std::fabs(x)); }
double i1(double x) {
  return std::isnan(x) ? x
                       : std::copysign(std::fabs(x) > 700 ? std::exp(std::fabs(x)) * ie(1, std::fabs(x))
                                                          : std::cyl_bessel_i(1, std::fabs(x)),
                                       x);
}
double i1e(double x) { return std::isnan(x) ? x : std::copysign(ie(1, std::fabs(x)), x); }
double k0e(double x) { return ke(0, x); }
double k1e(double x) { return ke(1, x); }
double k0(double x) { return ke(0, x) * std::exp(-x); }
double k1(double x) { return ke(1, x) * std::exp(-x); }
double j0(double x) { return std::isinf(x) ? 0 : ::j0(x); }
double j1(double x) { return std::isinf(x) ? 0 : ::j1(x); }
double y0(double x) { return x < 0 ? nan : ::y0(x); }
double y1(double x) { return x < 0 ? nan : ::y1(x); }
double spherical_j0(double x) { return x == 0 ? 1 : std::isinf(x) ? 0 : std::sin(x) / x; }

double airy(double x) {
  if (std::isnan(x) || std::isinf(x)) return std::isnan(x) ? x : x > 0 ? 0 : nan;
  if (x == 0) return 0.35502805388781723926;
  if (x > 110) return 0;  // less than the least double
  double z = 2.0 / 3 * std::pow(std::fabs(x), 1.5);
  if (x > 0) return std::sqrt(x / 3) / M_PI * std::cyl_bessel_k(1.0 / 3, z);
  double j = std::cyl_bessel_j(1.0 / 3, z), y = std::cyl_neumann(1.0 / 3, z);
  return std::sqrt(-x) / 3 * (j + std::cos(M_PI / 3) * j - std::sin(M_PI / 3) * y);
}

double erfcx(double x) {
  if (x < 20) return std::exp(x * x) * std::erfc(x);
  double y = 1 / (2 * x * x);
  return (1 - y * (1 - 3 * y * (1 - 5 * y * (1 - 7 * y)))) / (x * std::sqrt(M_PI));
}

// Newton steps on the logarithm of the distribution; from the left they approach without overshooting.
double ndtri(double p) {
  if (!(p >= 0 && p <= 1)) return nan;
  if (p == 0 || p == 1) return p == 0 ? -inf : inf;
  if (p > 0.5) return -ndtri(1 - p);
  double x = -std::sqrt(-2 * std::log(p)), target = std::log(p);
  for (int i = 0; i < 60; ++i) {
    double below = 0.5 * std::erfc(-x * M_SQRT1_2), slope = std::exp(-x * x / 2) / std::sqrt(2 * M_PI) / below;
    double step = (target - std::log(below)) / slope;
    x += step;
    if (std::fabs(step) < 1e-16 * std::fabs(x)) break;
  }
  return x;
}

double log_ndtr(double x) {
  if (x < -1) return std::log(erfcx(-x * M_SQRT1_2) / 2) - x * x / 2;
  return std::log1p(-std::erfc(x * M_SQRT1_2) / 2);
}

// Euler and Maclaurin: a sum of the first terms, the integral of the rest, and its corrections by Bernoulli numbers.
double zeta(double s, double q) {
  if (std::isnan(s) || std::isnan(q)) return nan;
  if (s == 1) return inf;
  if (s < 1) return nan;
  if (q <= 0 && q == std::floor(q)) return inf;
  if (q <= 0 && s != std::floor(s)) return nan;
  double terms = 15 + (q < 0 ? std::ceil(-q) : 0), sum = 0;
  for (double k = 0; k < terms; ++k) sum += std::pow(q + k, -s);
  double z = q + terms, power = std::pow(z, -s);
  sum += power * z / (s - 1) + power / 2;
  constexpr double bernoulli[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                  5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};
  double factor = s * power / z, factorial = 2;  // s (s+1) ... z^(-s-2j+1), over (2j)!
  for (int j = 1; j <= 8; ++j) {
    sum += bernoulli[j - 1] * factor / factorial;
    factor *= (s + 2 * j - 1) * (s + 2 * j) / (z * z);
    factorial *= (2 * j + 1) * (2 * j + 2);
  }
  return sum;
}

double polygamma(int64_t n, double x) {
  auto order = static_cast<double>(n);
  return (n % 2 ? 1 : -1) * std::tgamma(order + 1) * zeta(order + 1, x);
}

double lower_gamma(double a, double x) {
  if (!(a >= 0) || !(x >= 0)) return nan;
  if (a == 0) return x > 0 ? 1 : nan;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? nan : 0;
  if (std::isinf(x)) return 1;
  if (x >= a + 1) return 1 - upper_gamma(a, x);
  double term = 1 / a, sum = term;
  for (double k = a + 1; std::fabs(term) > 1e-17 * std::fabs(sum); ++k) sum += term *= x / k;
  return sum * std::exp(a * std::log(x) - x - std::lgamma(a));
}

double upper_gamma(double a, double x) {
  if (!(a >= 0) || !(x >= 0)) return nan;
  if (a == 0) return x > 0 ? 0 : nan;
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? nan : 1;
  if (std::isinf(x)) return 0;
  if (x < a + 1) return 1 - lower_gamma(a, x);
  // Lentz's way through the continued fraction.
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int i = 1; i < 10000; ++i) {
    double an = -i * (i - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    h *= d * c;
    if (std::fabs(d * c - 1) < 1e-16) break;
  }
  return h * std::exp(a * std::log(x) - x - std::lgamma(a));
}

double chebyshev_t(double x, double n) {
  return recurrence(n, 1, x, [x](double, double p, double q) { return 2 * x * p - q; });
}
double chebyshev_u(double x, double n) {
  return recurrence(n, 1, 2 * x, [x](double, double p, double q) { return 2 * x * p - q; });
}
double chebyshev_v(double x, double n) {
  return recurrence(n, 1, 2 * x - 1, [x](double, double p, double q) { return 2 * x * p - q; });
}
double chebyshev_w(double x, double n) {
  return recurrence(n, 1, 2 * x + 1, [x](double, double p, double q) { return 2 * x * p - q; });
}
double hermite_h(double x, double n) {
  return recurrence(n, 1, 2 * x, [x](double k, double p, double q) { return 2 * x * p - 2 * k * q; });
}
double hermite_he(double x, double n) {
  return recurrence(n, 1, x, [x](double k, double p, double q) { return x * p - k * q; });
}
double laguerre(double x, double n) {
  return recurrence(n, 1, 1 - x, [x](double k, double p, double q) { return ((2 * k + 1 - x) * p - k * q) / (k + 1); });
}
double legendre(double x, double n) {
  return recurrence(n, 1, x, [x](double k, double p, double q) { return ((2 * k + 1) * x * p - k * q) / (k + 1); });
}

}  // namespace tenon::special

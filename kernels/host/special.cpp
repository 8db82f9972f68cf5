// Special functions, element by element, in double precision.
#include "kernels/host/airy.h"
#include "kernels/host/each.h"

namespace tenon::kernels {
namespace {

const double inf = __builtin_inf(), nan = __builtin_nan("");

// Long ones, compiled once.
[[gnu::noinline]] double power(double x, double y) { return pow(x, y); }
[[gnu::noinline]] double log_gamma(double x) { return lgamma(x); }

// Euler and Maclaurin: a sum of the first terms, the integral of the rest, and its corrections by Bernoulli numbers.
double zeta(double s, double q) {
  if (is_nan(s) || is_nan(q)) return nan;
  if (s == 1) return inf;
  if (s < 1) return nan;
  if (q <= 0 && q == floor(q)) return inf;
  if (q <= 0 && s != floor(s)) return nan;
  double terms = 15 + (q < 0 ? ceil(-q) : 0), sum = 0;
  for (double k = 0; k < terms; ++k) sum += power(q + k, -s);
  double z = q + terms, last = power(z, -s);
  sum += last * z / (s - 1) + last / 2;
  constexpr double bernoulli[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                  5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};
  double factor = s * last / z, factorial = 2;  // s (s+1) ... z^(-s-2j+1), over (2j)!
  for (int j = 1; j <= 8; ++j) {
    sum += bernoulli[j - 1] * factor / factorial;
    factor *= (s + 2 * j - 1) * (s + 2 * j) / (z * z);
    factorial *= (2 * j + 1) * (2 * j + 2);
  }
  return sum;
}

double polygamma(int64_t n, double x) {
  double factorial = 1;
  for (int64_t k = 2; k <= n && k <= 171; ++k) factorial *= static_cast<double>(k);
  double value = factorial * zeta(static_cast<double>(n) + 1, x);
  return n % 2 ? value : -value;
}

// Regularised incomplete gamma functions: the power series below a + 1, the continued fraction above.
double gamma_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (double k = a + 1; abs(term) > 1e-17 * abs(sum); ++k) sum += term *= x / k;
  return sum * exp(a * log(x) - x - log_gamma(a));
}
double gamma_fraction(double a, double x) {  // Lentz's way
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int i = 1; i < 10000; ++i) {
    double an = -i * (i - a);
    b += 2;
    d = 1 / (an * d + b);
    c = b + an / c;
    h *= d * c;
    if (abs(d * c - 1) < 1e-16) break;
  }
  return h * exp(a * log(x) - x - log_gamma(a));
}
double lower_gamma(double a, double x) {
  if (!(a >= 0) || !(x >= 0)) return nan;
  if (a == 0) return x > 0 ? 1 : nan;
  if (x == 0) return 0;
  if (is_infinite(a)) return is_infinite(x) ? nan : 0;
  if (is_infinite(x)) return 1;
  return x >= a + 1 ? 1 - gamma_fraction(a, x) : gamma_series(a, x);
}
double upper_gamma(double a, double x) {
  if (!(a >= 0) || !(x >= 0)) return nan;
  if (a == 0) return x > 0 ? 0 : nan;
  if (x == 0) return 1;
  if (is_infinite(a)) return is_infinite(x) ? nan : 1;
  if (is_infinite(x)) return 0;
  return x < a + 1 ? 1 - gamma_series(a, x) : gamma_fraction(a, x);
}

// p(k + 1) from p(k) and p(k - 1); below 0 the polynomials are 0.
template <class Next>
double recurrence(double n, double first, double second, Next next) {
  int64_t degree = n < 0x1p62 ? saturated(n) : -1;  // no polynomial is of such a degree
  if (degree < 0) return 0;
  if (degree == 0) return first;
  double before = first, now = second;
  for (int64_t k = 1; k < degree && !is_nan(now); ++k) {
    double after = next(static_cast<double>(k), now, before);
    before = now;
    now = after;
  }
  return now;
}

double chebyshev(double x, double n, double second) {
  return recurrence(n, 1, second, [x](double, double p, double q) { return 2 * x * p - q; });
}
double chebyshev_t(double x, double n) { return chebyshev(x, n, x); }
double chebyshev_u(double x, double n) { return chebyshev(x, n, 2 * x); }
double chebyshev_v(double x, double n) { return chebyshev(x, n, 2 * x - 1); }
double chebyshev_w(double x, double n) { return chebyshev(x, n, 2 * x + 1); }
double shifted_t(double x, double n) { return chebyshev_t(2 * x - 1, n); }
double shifted_u(double x, double n) { return chebyshev_u(2 * x - 1, n); }
double shifted_v(double x, double n) { return chebyshev_v(2 * x - 1, n); }
double shifted_w(double x, double n) { return chebyshev_w(2 * x - 1, n); }
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

}  // namespace

#define TENON_OF_ONE(name, f) \
  TENON_HOST_FUNCTION(name) { return each<double>(*call, lo, hi, f); }
#define TENON_OF_TWO(name, f) \
  TENON_HOST_FUNCTION(name) { return each_pair<double>(*call, lo, hi, f); }

TENON_OF_ONE(special_airy_ai, airy)
TENON_OF_TWO(special_igamma, lower_gamma)
TENON_OF_TWO(special_igammac, upper_gamma)
TENON_OF_TWO(special_zeta, zeta)
TENON_OF_TWO(special_chebyshev_t, chebyshev_t)
TENON_OF_TWO(special_chebyshev_u, chebyshev_u)
TENON_OF_TWO(special_chebyshev_v, chebyshev_v)
TENON_OF_TWO(special_chebyshev_w, chebyshev_w)
TENON_OF_TWO(special_shifted_chebyshev_t, shifted_t)
TENON_OF_TWO(special_shifted_chebyshev_u, shifted_u)
TENON_OF_TWO(special_shifted_chebyshev_v, shifted_v)
TENON_OF_TWO(special_shifted_chebyshev_w, shifted_w)
TENON_OF_TWO(special_hermite_h, hermite_h)
TENON_OF_TWO(special_hermite_he, hermite_he)
TENON_OF_TWO(special_laguerre, laguerre)
TENON_OF_TWO(special_legendre, legendre)

// self; n
TENON_HOST_FUNCTION(special_polygamma) {
  int64_t n = Params(*call).integer();
  if (n == 0) return each<double>(*call, lo, hi, [](double x) { return digamma(x); });
  return each<double>(*call, lo, hi, [n](double x) { return polygamma(n, x); });
}

}  // namespace tenon::kernels

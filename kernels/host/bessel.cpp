// GCC's vectorizer joins a product with an alternating sum (vfmaddsub) although contraction is off; targets would
// differ.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")
#endif
#include "kernels/host/bessel.h"

#include "kernels/host/numbers.h"

namespace tenon::kernels {
namespace {

constexpr double pi = 3.14159265358979323846, gamma = 0.57721566490153286061;
const double inf = __builtin_inf(), nan = __builtin_nan("");

// The series in 1/x of modified functions for large x, up to where its terms grow. Signs alternate for I.
double large_series(double order, double x, double sign) {
  double sum = 1, term = 1, m = 4 * order * order;
  for (int k = 1; k < 60; ++k) {
    double next = sign * term * (m - (2 * k - 1) * (2 * k - 1)) / (8 * k * x);
    if (abs(next) > abs(term)) break;
    sum += term = next;
    if (abs(term) < 1e-18) break;
  }
  return sum;
}

constexpr double large = 30;  // from here on that series has every digit

// I_n(x), n 0 or 1, by its power series: all terms are positive.
double power_series(int n, double x) {
  double square = x * x / 4, term = n ? x / 2 : 1, sum = term;
  for (int k = 1; k < 200; ++k) {
    term *= square / (k * (k + n));
    sum += term;
    if (term < 1e-18 * sum) break;
  }
  return sum;
}
double ie(int n, double x) {
  if (x < large) return exp(-x) * power_series(n, x);
  return x == inf ? 0 : large_series(n, x, -1) / sqrt(2 * pi * x);
}
double i(int n, double x) {
  if (x < large) return power_series(n, x);
  double half = exp(x / 2);
  return x == inf ? inf : half * (large_series(n, x, -1) / sqrt(2 * pi * x)) * half;
}

// exp(x) K(x) = the integral of exp(-x (cosh t - 1)) cosh(order t): the trapezoidal rule gives every digit of it.
double ke(double order, double x) {
  if (!(x >= 0)) return nan;
  if (x == 0) return inf;
  if (x == inf) return 0;
  if (x >= large) return sqrt(pi / (2 * x)) * large_series(order, x, 1);
  if (x < 1e-8) return order == 0 ? -log(x / 2) - gamma : 1 / x;
  constexpr double step = 0.125;
  double sum = 0.5;
  for (int k = 1; k < 1000; ++k) {
    double t = k * step, s = sinh(t / 2), term = exp(-2 * x * s * s);
    if (order != 0) term *= cosh(order * t);
    sum += term;
    if (term < 1e-18 * sum) break;
  }
  return sum * step;
}

struct Pair {
  double j, y;
};

// J and Y of order 0 or 1 for large x.
Pair by_phase(int n, double x) {
  double m = 4.0 * n * n, p = 1, q = 0, term = 1;
  for (int k = 1; k < 100; ++k) {
    double next = term * (m - (2 * k - 1) * (2 * k - 1)) / (8 * k * x);
    if (abs(next) > abs(term) || abs(next) < 1e-20) break;
    term = next;
    if (k % 2) q += k % 4 == 1 ? term : -term;
    else p += k % 4 == 0 ? term : -term;
  }
  double s = sin(x), c = cos(x), root = sqrt(1 / (pi * x));  // the 2 is in the sums of s and c
  double cosine = n ? s - c : s + c, sine = n ? -s - c : s - c;
  return {root * (p * cosine - q * sine), root * (p * sine + q * cosine)};
}

// J by the recurrence downwards from an order where it is nothing, Y as a sum over J.
Pair by_recurrence(int n, double x) {
  int order = 2 * (static_cast<int>(x * 0.75) + 14);
  double above = 0, now = 1e-200, norm = 0, even = 0, odd = 0, zero = 0, one = 0;
  for (int k = order; k >= 0; --k) {  // now is J_k
    if (k % 2 == 0) {
      norm += (k ? 2 : 1) * now;
      if (k) even += (k / 2 % 2 ? -2.0 : 2.0) * now / (k / 2);
      else zero = now;
    } else {
      int i = k / 2;
      if (i) odd += (i % 2 ? -1.0 : 1.0) * k * now / (static_cast<double>(i) * (i + 1));
      else one = now;
    }
    double below = 2 * k / x * now - above;
    above = now;
    now = below;
  }
  zero /= norm;
  one /= norm;
  double logarithm = log(x / 2) + gamma;
  if (n == 0) return {zero, 2 / pi * (logarithm * zero - even / norm)};
  return {one, 2 / pi * (-zero / x + (logarithm - 1) * one - odd / norm)};
}

Pair near_zero(int n, double x) {
  double h = x / 2, square = h * h, logarithm = log(h) + gamma;
  double zero = 1 - square + square * square / 4, one = h * (1 - square / 2 + square * square / 12);
  if (n == 0) return {zero, 2 / pi * (logarithm * zero + square - 0.375 * square * square)};
  return {one, 2 / pi * (logarithm * one - 1 / x) - h / pi * (1 - 1.25 * square)};
}

Pair jy(int n, double x) {
  if (x < 1e-3) return near_zero(n, x);
  return x < 25 ? by_recurrence(n, x) : by_phase(n, x);
}

double j(int n, double x) {
  double a = abs(x), value = a == inf ? 0 : a == 0 ? 1 - n : is_nan(x) ? x : jy(n, a).j;
  return n && x < 0 ? -value : value;
}
double y(int n, double x) { return x == 0 ? -inf : x == inf ? 0 : x > 0 ? jy(n, x).y : nan; }

}  // namespace

double i0(double x) { return is_nan(x) ? x : i(0, abs(x)); }
double i0e(double x) { return is_nan(x) ? x : ie(0, abs(x)); }
double i1(double x) { return is_nan(x) ? x : copysign(i(1, abs(x)), x); }
double i1e(double x) { return is_nan(x) ? x : copysign(ie(1, abs(x)), x); }
double k0e(double x) { return ke(0, x); }
double k1e(double x) { return ke(1, x); }
double k0(double x) { return ke(0, x) * exp(-x); }
double k1(double x) { return ke(1, x) * exp(-x); }
double j0(double x) { return j(0, x); }
double j1(double x) { return j(1, x); }
double y0(double x) { return y(0, x); }
double y1(double x) { return y(1, x); }

namespace {

// Its value and slope at some places; between them the differential equation f'' = x f gives the Taylor series.
struct Place {
  double at, value, slope;
};
constexpr Place places[] = {
    {0, 0.35502805388781723926, -0.25881940379280679841},   {-2, 0.22740742820168557599, 0.61825902074169104141},
    {-4, -0.070265532949289515099, -0.7906285753685813803}, {-6, -0.32914517362982310523, 0.34593548728134289493},
    {-8, -0.052705050356386202622, 0.93556093819830655103}, {-10, 0.040241238486443190689, 0.9962650441327900559}};

double airy_near(const Place& place, double x) {
  double h = x - place.at, before = place.value, now = place.slope * h, sum = before + now;
  double two_before = 0;  // term k - 3 of the series, with the powers of h in it
  for (int k = 2; k < 60; ++k) {
    double next = (place.at * before * h * h + two_before * h * h * h) / (k * (k - 1));
    sum += next;
    two_before = before;
    before = now;
    now = next;
    if (k > 4 && abs(next) + abs(before) < 1e-18) break;
  }
  return sum;
}

double airy_far(double y) {  // Ai(-y)
  double root = sqrt(y), z = 2.0 / 3 * y * root, term = 1, p = 1, q = 0;
  for (int k = 1; k < 60; ++k) {
    double next = term * (6 * k - 5) * (6 * k - 3) * (6 * k - 1) / (216.0 * k * (2 * k - 1) * z);
    if (next > term || next < 1e-20) break;
    term = next;
    if (k % 2) q += k % 4 == 1 ? term : -term;
    else p += k % 4 == 0 ? term : -term;
  }
  double s = sin(z), c = cos(z);
  return (p * (c + s) + q * (s - c)) / sqrt(2 * pi * root);
}

}  // namespace

double airy(double x) {
  if (is_nan(x) || is_infinite(x)) return is_nan(x) ? x : x > 0 ? 0 : nan;
  if (x > 110) return 0;  // less than the least double
  if (x <= -11) return airy_far(-x);
  if (x <= 1) {
    int k = x > -1 ? 0 : static_cast<int>((1 - x) / 2);
    return airy_near(places[k], x);
  }
  double z = 2.0 / 3 * x * sqrt(x);
  return sqrt(x / 3) / pi * ke(1.0 / 3, z) * exp(-z);
}

}  // namespace tenon::kernels

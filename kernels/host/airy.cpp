// GCC's vectorizer joins a product with an alternating sum (vfmaddsub) although contraction is off; targets would
// differ.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-vectorize")
#endif
#include "kernels/host/airy.h"

#include "kernels/host/numbers.h"

namespace tenon::kernels {
namespace {

constexpr double pi = 3.14159265358979323846;
const double nan = __builtin_nan("");

// exp(x) K(x) of order 1/3, for x above 0.6. For large x its series in 1/x, up to where terms grow; else it is the
// integral of exp(-x (cosh t - 1)) cosh(t/3), of which the trapezoidal rule gives every digit.
double scaled_third(double x) {
  constexpr double order = 1.0 / 3, large = 30;
  if (x >= large) {
    double sum = 1, term = 1;
    for (int k = 1; k < 60; ++k) {
      double next = term * (4 * order * order - (2 * k - 1) * (2 * k - 1)) / (8 * k * x);
      if (abs(next) > abs(term)) break;
      sum += term = next;
      if (abs(term) < 1e-18) break;
    }
    return sqrt(pi / (2 * x)) * sum;
  }
  constexpr double step = 0.125;
  double sum = 0.5;
  for (int k = 1; k < 1000; ++k) {
    double t = k * step, s = sinh(t / 2), term = exp(-2 * x * s * s) * cosh(order * t);
    sum += term;
    if (term < 1e-18 * sum) break;
  }
  return sum * step;
}

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
  return sqrt(x / 3) / pi * scaled_third(z) * exp(-z);
}

}  // namespace tenon::kernels

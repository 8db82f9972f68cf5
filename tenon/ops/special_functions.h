// Special functions of real numbers, in double precision.
#pragma once
#include <cstdint>

namespace tenon::special {

double i0(double x);  // modified Bessel functions, and scaled by exp(-|x|)
double i0e(double x);
double i1(double x);
double i1e(double x);
double k0(double x);
double k1(double x);
double k0e(double x);  // scaled by exp(x)
double k1e(double x);
double j0(double x);
double j1(double x);
double y0(double x);
double y1(double x);
double spherical_j0(double x);
double airy(double x);
double erfcx(double x);  // exp(x^2) erfc(x)
double ndtri(double p);  // where the normal distribution reaches p
double log_ndtr(double x);
double zeta(double s, double q);  // Hurwitz's
double polygamma(int64_t n, double x);
double lower_gamma(double a, double x);  // regularised incomplete gamma functions
double upper_gamma(double a, double x);

double chebyshev_t(double x, double n);
double chebyshev_u(double x, double n);
double chebyshev_v(double x, double n);
double chebyshev_w(double x, double n);
double hermite_h(double x, double n);
double hermite_he(double x, double n);
double laguerre(double x, double n);
double legendre(double x, double n);

}  // namespace tenon::special

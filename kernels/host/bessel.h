// Bessel functions of real numbers.
#pragma once

#pragma GCC visibility push(hidden)  // no way round by tables of addresses
namespace tenon::kernels {

double i0(double x);  // modified ones, and scaled by exp(-|x|)
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
double airy(double x);

}  // namespace tenon::kernels
#pragma GCC visibility pop

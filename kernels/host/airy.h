// Airy's function of real numbers.
#pragma once

#pragma GCC visibility push(hidden)  // no way round by tables of addresses
namespace tenon::kernels {

double airy(double x);

}  // namespace tenon::kernels
#pragma GCC visibility pop

// Functions of mathematics for kernels, of float and double, at most 2 ulp wrong: tenon::kernels::exp, exp2, expm1,
// sigmoid, tanh, sinh, cosh, erf, erfc, erfinv, lgamma, digamma, log, log2, log10, log1p, asinh, acosh, atanh, sin,
// cos, tan, asin, acos, atan, sqrt, floor, ceil, trunc, round_even, abs, pow, atan2, hypot, fmod, nextafter, copysign.
// (Call them by these names inside namespace tenon::kernels.) They are the functions of tenon/compile/math.h, written
// as C by the build: a kernel of the library and generated code give the same bits, on every target. All are inlined,
// so a loop over one is vectorized; wrap the long ones (lgamma, pow) in a function of your own where they are called
// often. tenon::kernels::math also has half_to_float, float_to_half, bfloat_to_float and float_to_bfloat, on unsigned
// short.
#pragma once
#include "kernels/math_functions.h"

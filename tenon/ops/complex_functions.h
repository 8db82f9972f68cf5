// Functions of complex numbers as formulas over their parts.
#pragma once
#include "tenon/ops/complex.h"

namespace tenon::complex {

inline Complex product(const Complex& a, const Complex& b) { return a * b; }
inline Complex quotient(const Complex& a, const Complex& b) { return a / b; }
Tensor abs(const Complex& z);
Tensor angle(const Complex& z);
Complex sgn(const Complex& z);
Complex reciprocal(const Complex& z);
Complex square(const Complex& z);
Complex sqrt(const Complex& z);
Complex rsqrt(const Complex& z);
Complex exp(const Complex& z);
Complex exp2(const Complex& z);
Complex expm1(const Complex& z);
Complex log(const Complex& z);
Complex log2(const Complex& z);
Complex log10(const Complex& z);
Complex log1p(const Complex& z);
Complex pow(const Complex& z, const Complex& w);
Complex sin(const Complex& z);
Complex cos(const Complex& z);
Complex tan(const Complex& z);
Complex sinh(const Complex& z);
Complex cosh(const Complex& z);
Complex tanh(const Complex& z);
Complex asin(const Complex& z);
Complex acos(const Complex& z);
Complex atan(const Complex& z);
Complex asinh(const Complex& z);
Complex acosh(const Complex& z);
Complex atanh(const Complex& z);
Complex sigmoid(const Complex& z);
Complex sinc(const Complex& z);
Complex logaddexp(const Complex& z, const Complex& w);

Tensor eq(const Complex& a, const Complex& b);
Tensor ne(const Complex& a, const Complex& b);
Tensor isnan(const Complex& z);
Tensor isinf(const Complex& z);
Tensor isfinite(const Complex& z);

}  // namespace tenon::complex

// Arithmetic on elements, and the operators by which formulas are written.
#pragma once
#include "tenon/ops/logic.h"
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle add, sub, mul, div, neg, reciprocal, pow_scalar, pow_tensor, pow_base, sqrt, rsqrt, exp, log, abs, sign, where, eq, ne, lt, le, gt, ge, maximum,
    minimum, sin, cos, square, rsub, div_mode;

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator+(const Tensor& a, double b) { return add(a, b); }
inline Tensor operator+(double a, const Tensor& b) { return add(b, a); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator-(const Tensor& a, double b) { return sub(a, b); }
Tensor operator-(double a, const Tensor& b);
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(const Tensor& a, double b) { return mul(a, b); }
inline Tensor operator*(double a, const Tensor& b) { return mul(b, a); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator/(const Tensor& a, double b) { return div(a, b); }
Tensor operator/(double a, const Tensor& b);
inline Tensor operator-(const Tensor& a) { return neg(a); }
inline Tensor operator<(const Tensor& a, const Tensor& b) { return lt(a, b); }
inline Tensor operator<(const Tensor& a, double b) { return lt(a, b); }
inline Tensor operator<=(const Tensor& a, double b) { return le(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return gt(a, b); }
inline Tensor operator>(const Tensor& a, double b) { return gt(a, b); }
inline Tensor operator>=(const Tensor& a, double b) { return ge(a, b); }

/// Gradients of the larger (or smaller) of a and b: where they tie, each gets half.
Grads tied_gradients(const Tensor& g, const Tensor& a, const Tensor& b, bool larger);

}  // namespace tenon

// Special functions as scalar formulas, so that they fuse like any other: computed in f64, given in the argument's
// type.
#pragma once
#include "tenon/loop/expr.h"

namespace tenon::special {

using loop::Expr;

Expr erfcx(Expr x);  // exp(x^2) erfc(x)
Expr ndtri(Expr p);  // where the normal distribution reaches p
Expr log_ndtr(Expr x);

Expr i0(Expr x);  // modified Bessel functions, and these times exp(-|x|)
Expr i0e(Expr x);
Expr i1(Expr x);
Expr i1e(Expr x);
Expr k0(Expr x);  // and times exp(x)
Expr k0e(Expr x);
Expr k1(Expr x);
Expr k1e(Expr x);

Expr j0(Expr x);
Expr j1(Expr x);
Expr y0(Expr x);
Expr y1(Expr x);
Expr spherical_j0(Expr x);

}  // namespace tenon::special

#include "tenon/ops/special_functions.h"

#include <cmath>
#include <limits>
#include <span>

#include "tenon/ops/special_tables.h"

namespace tenon::special {
namespace {

using loop::abs;
using loop::call;
using loop::cos;
using loop::exp;
using loop::Fn;
using loop::log;
using loop::log1p;
using loop::select;
using loop::sin;
using loop::sqrt;

constexpr double inf = std::numeric_limits<double>::infinity();

/// A function of f64 in the type of its argument.
template <class F>
Expr in_double(Expr x, F f) {
  loop::Compute type = (*x.arena)[x.id].type;
  return cast(f(cast(x, loop::Compute::f64)), type);
}

/// Clenshaw's sum of c[k] T_k(t).
Expr series(std::span<const double> c, Expr t) {
  Expr twice = t + t, after = 0.0, now = c[c.size() - 1];
  for (size_t k = c.size() - 1; k-- > 1;) {
    Expr before = twice * now - after + c[k];
    after = now;
    now = before;
  }
  return t * now - after + c[0];
}

Expr with_sign_of(Expr x, Expr value) { return select(x < 0.0, -value, value); }

Expr scaled_upper(Expr x) {  // exp(x^2) erfc(x) for x >= 0
  Expr t = select(x == inf, 1.0, (x - 4.0) / (x + 4.0));
  return series(erfcx_series, t) / (1.0 + 2.0 * x);
}
Expr erfcx_of(Expr x) {
  Expr right = scaled_upper(abs(x));
  return select(x < 0.0, 2.0 * exp(x * x) - right, right);
}

// exp(-|x|) I(x) of order 0 and 1, for x >= 0. Series over x up to 10, over 1/x beyond.
Expr i0e_of(Expr a) {
  return select(a <= 10.0, series(i0e_small, a * 0.2 - 1.0), series(i0e_large, 20.0 / a - 1.0) / sqrt(a));
}
Expr i1e_of(Expr a) {
  return select(a <= 10.0, a * series(i1e_small, a * 0.2 - 1.0), series(i1e_large, 20.0 / a - 1.0) / sqrt(a));
}
Expr grown(Expr a, Expr scaled) {  // times exp(a), which may be too large where the product is not
  Expr half = exp(a * 0.5);
  return select(a == inf, inf, half * scaled * half);
}

// K with its logarithm apart up to 2; beyond, times sqrt(x) exp(x), over 1/x.
Expr k0_small_of(Expr x) {
  return series(k0_small, x * x * 0.5 - 1.0) - log(x * 0.5) * (exp(x) * series(i0e_small, x * 0.2 - 1.0));
}
Expr k1_small_of(Expr x) {
  Expr i = x * exp(x) * series(i1e_small, x * 0.2 - 1.0);
  return select(x == 0.0, inf, series(k1_small, x * x * 0.5 - 1.0) / x + log(x * 0.5) * i);
}
Expr k_large_of(std::span<const double> c, Expr x) { return series(c, 4.0 / x - 1.0) / sqrt(x); }

// J and Y: over x^2 up to 8; beyond, as waves with two slowly changing amplitudes.
struct Waves {
  Expr p, q, sine, cosine, root;
};
Expr up_to_eight(Expr a, Expr small, Expr large) { return select(a <= 8.0, small, select(a == inf, 0.0, large)); }
Waves waves(std::span<const double> p, std::span<const double> q, Expr a) {
  Expr t = 128.0 / (a * a) - 1.0;
  return {series(p, t), series(q, t) / a, sin(a), cos(a), sqrt(1.0 / (a * M_PI))};
}
Expr j0_of(Expr a) {
  Waves w = waves(p0_large, q0_large, a);
  Expr large = w.root * (w.p * (w.cosine + w.sine) - w.q * (w.sine - w.cosine));
  return up_to_eight(a, series(j0_small, a * a * 0.03125 - 1.0), large);
}
Expr j1_of(Expr a) {
  Waves w = waves(p1_large, q1_large, a);
  Expr large = w.root * (w.p * (w.sine - w.cosine) + w.q * (w.sine + w.cosine));
  return up_to_eight(a, a * series(j1_small, a * a * 0.03125 - 1.0), large);
}
Expr y0_of(Expr x) {
  Waves w = waves(p0_large, q0_large, x);
  Expr large = w.root * (w.p * (w.sine - w.cosine) + w.q * (w.cosine + w.sine));
  Expr t = x * x * 0.03125 - 1.0;
  return up_to_eight(x, series(y0_small, t) + M_2_PI * log(x * 0.5) * series(j0_small, t), large);
}
Expr y1_of(Expr x) {
  Waves w = waves(p1_large, q1_large, x);
  Expr large = w.root * (w.q * (w.sine - w.cosine) - w.p * (w.sine + w.cosine));
  Expr t = x * x * 0.03125 - 1.0;
  Expr small = x * series(y1_small, t) + M_2_PI * (log(x * 0.5) * (x * series(j1_small, t)) - 1.0 / x);
  return up_to_eight(x, select(x == 0.0, -inf, small), large);
}

}  // namespace

Expr erfcx(Expr x) { return in_double(x, erfcx_of); }

Expr ndtri(Expr p) {
  return in_double(p, [](Expr p) {
    constexpr double tail = 0.08, least = -0.38888888888888889,
                     most = 0.77272727272727273;  // (r - 5)/(r + 5) at 2.2, 39
    Expr below = select(p > 0.5, 1.0 - p, p), r = sqrt(-2.0 * log(below));
    Expr t = ((r - 5.0) / (r + 5.0) - (most + least) / 2) * (2 / (most - least));
    Expr far = r * series(ndtri_tail, t), outer = select(p > 0.5, far, -far);
    Expr inner = M_SQRT2 * call(Fn::erfinv, 2.0 * p - 1.0);
    Expr inside = select(below < tail, outer, inner);
    return select(p == 0.0, -inf, select(p == 1.0, inf, inside));
  });
}

Expr log_ndtr(Expr x) {
  return in_double(x, [](Expr x) {
    Expr left = log(scaled_upper(abs(x) * M_SQRT1_2) * 0.5) - x * x * 0.5;
    return select(x < -1.0, left, log1p(call(Fn::erfc, x * M_SQRT1_2) * -0.5));
  });
}

Expr i0e(Expr x) {
  return in_double(x, [](Expr x) { return i0e_of(abs(x)); });
}
Expr i0(Expr x) {
  return in_double(x, [](Expr x) { return grown(abs(x), i0e_of(abs(x))); });
}
Expr i1e(Expr x) {
  return in_double(x, [](Expr x) { return with_sign_of(x, i1e_of(abs(x))); });
}
Expr i1(Expr x) {
  return in_double(x, [](Expr x) { return with_sign_of(x, grown(abs(x), i1e_of(abs(x)))); });
}

Expr k0(Expr x) {
  return in_double(x, [](Expr x) { return select(x <= 2.0, k0_small_of(x), exp(-x) * k_large_of(k0e_large, x)); });
}
Expr k0e(Expr x) {
  return in_double(x, [](Expr x) { return select(x <= 2.0, exp(x) * k0_small_of(x), k_large_of(k0e_large, x)); });
}
Expr k1(Expr x) {
  return in_double(x, [](Expr x) { return select(x <= 2.0, k1_small_of(x), exp(-x) * k_large_of(k1e_large, x)); });
}
Expr k1e(Expr x) {
  return in_double(x, [](Expr x) { return select(x <= 2.0, exp(x) * k1_small_of(x), k_large_of(k1e_large, x)); });
}

Expr j0(Expr x) {
  return in_double(x, [](Expr x) { return j0_of(abs(x)); });
}
Expr j1(Expr x) {
  return in_double(x, [](Expr x) { return with_sign_of(x, j1_of(abs(x))); });
}
Expr y0(Expr x) { return in_double(x, y0_of); }
Expr y1(Expr x) { return in_double(x, y1_of); }

Expr spherical_j0(Expr x) {
  return in_double(x, [](Expr x) { return select(x == 0.0, 1.0, select(call(Fn::is_inf, x), 0.0, sin(x) / x)); });
}

}  // namespace tenon::special

#include "tenon/ops/complex_functions.h"

#include <cmath>

#include "tenon/ops/activation.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/trigonometric.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"

namespace tenon::complex {
namespace {

Tensor chosen(const Tensor& condition, const Tensor& then, const Tensor& otherwise) {
  return where(condition, then, otherwise);
}
Complex chosen(const Tensor& condition, const Complex& then, const Complex& otherwise) {
  return {where(condition, then.re, otherwise.re), where(condition, then.im, otherwise.im)};
}
Tensor is_zero(const Complex& z) { return logical_and(tenon::eq(z.re, 0.0), tenon::eq(z.im, 0.0)); }
Complex times_i(const Complex& z) { return {-z.im, z.re}; }
Complex over_i(const Complex& z) { return {z.im, -z.re}; }
Complex conjugated(const Complex& z) { return {z.re, -z.im}; }
Complex scaled(const Complex& z, double by) { return {z.re * by, z.im * by}; }
Complex one_minus(const Complex& z) { return {1.0 - z.re, -z.im}; }
Complex one_plus(const Complex& z) { return {z.re + 1.0, z.im}; }

}  // namespace

// At zero, where these have no derivative, PyTorch's is zero: what is differentiated there is 1.
Tensor abs(const Complex& z) {
  Tensor zero = is_zero(z);
  return where(zero, 0.0, hypot(where(zero, 1.0, z.re), z.im));
}
Tensor angle(const Complex& z) {
  Tensor zero = is_zero(z);
  Tensor elsewhere = atan2(where(zero, 0.0, z.im), where(zero, 1.0, z.re));
  return where(zero, atan2(detach(z.im), detach(z.re)), elsewhere);
}
Complex sgn(const Complex& z) {
  Tensor zero = is_zero(z);
  Tensor size = hypot(where(zero, 1.0, z.re), z.im);
  return {where(zero, 0.0, z.re / size), where(zero, 0.0, z.im / size)};
}

Complex reciprocal(const Complex& z) { return complex_number(1) / z; }
Complex square(const Complex& z) { return z * z; }

// The part that does not cancel first, the other from it.
Complex sqrt(const Complex& z) {
  Tensor zero = is_zero(z);
  Tensor re = where(zero, 1.0, z.re);
  Tensor root = tenon::sqrt((tenon::abs(re) + Tensor(hypot(re, z.im))) * 0.5);
  Tensor other = z.im / (root * 2.0), right = ge(re, 0.0), below = signbit(z.im);
  Complex there = chosen(right, Complex{root, other}, Complex{tenon::abs(other), chosen(below, -root, root)});
  return {where(zero, 0.0, there.re), chosen(zero, z.im, there.im)};
}
Complex rsqrt(const Complex& z) { return reciprocal(sqrt(z)); }

Complex exp(const Complex& z) {
  Tensor size = tenon::exp(z.re);
  return {size * Tensor(tenon::cos(z.im)), size * Tensor(tenon::sin(z.im))};
}
Complex exp2(const Complex& z) { return exp(scaled(z, M_LN2)); }
Complex expm1(const Complex& z) {
  Tensor half = tenon::sin(z.im * 0.5);
  return {Tensor(tenon::expm1(z.re)) * Tensor(tenon::cos(z.im)) - half * half * 2.0,
          Tensor(tenon::exp(z.re)) * Tensor(tenon::sin(z.im))};
}

// Near the unit circle the logarithm of the absolute value is small: from what its square is more than 1.
Complex log(const Complex& z) {
  Tensor x = tenon::abs(z.re), y = tenon::abs(z.im), large = maximum(x, y), small = minimum(x, y);
  Tensor near = logical_and(gt(large, 0.5), lt(large, 2.0));
  Tensor a = where(near, large, 1.0), b = where(near, small, 0.0);
  Tensor close = Tensor(tenon::log1p((a - 1.0) * (a + 1.0) + b * b)) * 0.5;
  return {chosen(near, close, tenon::log(hypot(where(near, 1.0, z.re), z.im))), angle(z)};
}
Complex log2(const Complex& z) { return scaled(log(z), 1 / M_LN2); }
Complex log10(const Complex& z) { return scaled(log(z), 1 / M_LN10); }
Complex log1p(const Complex& z) {
  Complex sum = one_plus(z), far = log(sum);
  Tensor near = logical_and(lt(tenon::abs(z.re), 0.5), lt(tenon::abs(z.im), 0.5));
  Tensor x = where(near, z.re, 0.0), y = where(near, z.im, 0.0);
  return {chosen(near, Tensor(tenon::log1p(x * (x + 2.0) + y * y)) * 0.5, far.re), far.im};
}

// Zero to the power of zero is one, as PyTorch has it.
Complex pow(const Complex& z, const Complex& w) {
  Tensor zero = is_zero(z), nothing = is_zero(w);
  Tensor im = z.im.meta().wrapped_number ? Tensor(zeros_like(z.re)) : z.im;  // of one dtype with the real part
  Complex there = exp(w * log({where(zero, 1.0, z.re), im}));
  Complex here = {where(gt(w.re, 0.0), 0.0, NAN), where(gt(w.re, 0.0), 0.0, NAN)};
  return chosen(nothing, complex_number(1), chosen(zero, here, there));
}

Complex sin(const Complex& z) {
  return {Tensor(tenon::sin(z.re)) * Tensor(tenon::cosh(z.im)), Tensor(tenon::cos(z.re)) * Tensor(tenon::sinh(z.im))};
}
Complex cos(const Complex& z) {
  return {Tensor(tenon::cos(z.re)) * Tensor(tenon::cosh(z.im)), -Tensor(tenon::sin(z.re)) * Tensor(tenon::sinh(z.im))};
}
Complex sinh(const Complex& z) {
  return {Tensor(tenon::sinh(z.re)) * Tensor(tenon::cos(z.im)), Tensor(tenon::cosh(z.re)) * Tensor(tenon::sin(z.im))};
}
Complex cosh(const Complex& z) {
  return {Tensor(tenon::cosh(z.re)) * Tensor(tenon::cos(z.im)), Tensor(tenon::sinh(z.re)) * Tensor(tenon::sin(z.im))};
}
// sinh(2z) / (cosh(2x) + cos(2y)), over cosh(x) squared, which may be beyond all numbers.
Complex tanh(const Complex& z) {
  Tensor t = tenon::tanh(z.re), c = tenon::cos(z.im), s = tenon::sin(z.im);
  Tensor rest = (1.0 - t) * (t + 1.0), size = c * c * rest + t * t;
  return {t / size, s * c * rest / size};
}
Complex tan(const Complex& z) { return over_i(tanh(times_i(z))); }

// Kahan, "Branch cuts for complex elementary functions": signs of zero say on which side of a cut a number is.
Complex asin(const Complex& z) {
  Complex less = sqrt(one_minus(z)), more = sqrt(one_plus(z));
  return {atan2(z.re, (less * more).re), tenon::asinh((conjugated(less) * more).im)};
}
Complex acos(const Complex& z) {
  Complex less = sqrt(one_minus(z)), more = sqrt(one_plus(z));
  return {Tensor(atan2(less.re, more.re)) * 2.0, tenon::asinh((conjugated(more) * less).im)};
}
Complex atanh(const Complex& z) {
  Tensor left = lt(z.re, 0.0), x = where(left, -z.re, z.re), away = 1.0 - x, square = z.im * z.im;
  Tensor re = Tensor(tenon::log1p(x * 4.0 / (away * away + square))) * 0.25;
  return {where(left, -re, re), Tensor(atan2(z.im * 2.0, away * (x + 1.0) - square)) * 0.5};
}
Complex acosh(const Complex& z) {
  Complex less = sqrt({z.re - 1.0, z.im}), more = sqrt(one_plus(z));
  return {tenon::asinh((conjugated(less) * more).re), Tensor(atan2(less.im, more.re)) * 2.0};
}
Complex asinh(const Complex& z) { return over_i(asin(times_i(z))); }
Complex atan(const Complex& z) { return over_i(atanh(times_i(z))); }

Complex sigmoid(const Complex& z) { return reciprocal(one_plus(exp(-z))); }

Complex sinc(const Complex& z) {
  Tensor zero = is_zero(z);
  Complex there = scaled({where(zero, 1.0, z.re), z.im}, M_PI);
  return chosen(zero, complex_number(1), sin(there) / there);
}

// From the number of larger real part, so that nothing overflows; infinities that are equal are not subtracted.
Complex logaddexp(const Complex& z, const Complex& w) {
  Tensor first = ge(z.re, w.re);
  Complex large = chosen(first, z, w), less = chosen(first, w, z) - large;
  Tensor same = logical_and(tenon::isinf(z.re), tenon::eq(z.re, w.re));
  Complex sum = large + log1p(exp(chosen(same, complex_number(0), less)));
  return chosen(same, large, sum);
}

Tensor eq(const Complex& a, const Complex& b) { return logical_and(tenon::eq(a.re, b.re), tenon::eq(a.im, b.im)); }
Tensor ne(const Complex& a, const Complex& b) { return logical_or(tenon::ne(a.re, b.re), tenon::ne(a.im, b.im)); }
Tensor isnan(const Complex& z) { return logical_or(tenon::isnan(z.re), tenon::isnan(z.im)); }
Tensor isinf(const Complex& z) { return logical_or(tenon::isinf(z.re), tenon::isinf(z.im)); }
Tensor isfinite(const Complex& z) { return logical_and(tenon::isfinite(z.re), tenon::isfinite(z.im)); }

}  // namespace tenon::complex

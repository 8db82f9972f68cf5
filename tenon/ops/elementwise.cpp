#include "tenon/ops/elementwise.h"

#include <cmath>
#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/convert.h"
#include "tenon/ops/create.h"
#include "tenon/ops/infer.h"
#include "tenon/ops/logic.h"
#include "tenon/ops/reduce.h"
#include "tenon/ops/registry.h"
#include "tenon/ops/special.h"
#include "tenon/ops/view.h"

namespace tenon {

Handle expm1, exp2, log2, log10, log1p, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, erf, erfc, erfinv, floor, ceil, trunc, round, lgamma,
    digamma, isnan, isinf, isfinite, sgn, angle;

static Handle round_decimals, sinc;

namespace {

using loop::Expr;

Tensor cosine(const Tensor& x) { return cos(x); }

// Of a scaled number: 10^decimals or its inverse, whichever is exact.
Expr round_at(Expr x, int64_t decimals) {
  if (decimals == 0) return call(loop::Fn::round_even, x);
  double ten = std::pow(10.0, std::abs(static_cast<double>(decimals)));
  return decimals < 0 ? call(loop::Fn::round_even, x / ten) * ten : call(loop::Fn::round_even, x * ten) / ten;
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::f16: return 65504;
    case DType::bf16: return 0x1.FEp127;
    case DType::f64: return std::numeric_limits<double>::max();
    default: return std::numeric_limits<float>::max();
  }
}

Grads no_slope(Vjp& v) { return {zeros_like(v.grad(0))}; }

}  // namespace

Tensor kept(const Tensor& grad, const Tensor& where_kept) { return where(where_kept, grad, 0.0); }

// A function of loop:: by its own name; g, x and y are the gradient, the argument and the result.
#define TENON_FUNCTION(handle, derivative)                                                                             \
  ops.add(handle, {.schema = #handle "(Tensor self) -> Tensor",                                                        \
                   .kind = Kind::pointwise,                                                                            \
                   .scalar = [](const Scalars& x) { return call(loop::Fn::handle, x[0]); },                            \
                   .vjp = [](Vjp& v) -> Grads {                                                                        \
                     [[maybe_unused]] Tensor g = v.grad(0), x = v[0], y = v.out(0);                                    \
                     return {derivative};                                                                              \
                   },                                                                                                  \
                   .promote = Promote::int_to_float})

void register_elementwise(Registry& ops) {
  TENON_FUNCTION(expm1, g * (y + 1.0));
  TENON_FUNCTION(exp2, g * y * M_LN2);
  TENON_FUNCTION(log2, g / (x * M_LN2));
  TENON_FUNCTION(log10, g / (x * M_LN10));
  TENON_FUNCTION(log1p, g / (x + 1.0));
  TENON_FUNCTION(tan, g * (y * y + 1.0));
  TENON_FUNCTION(asin, g * Tensor(rsqrt(1.0 - x * x)));
  TENON_FUNCTION(acos, g * -Tensor(rsqrt(1.0 - x * x)));
  TENON_FUNCTION(atan, g / (x * x + 1.0));
  TENON_FUNCTION(sinh, g * Tensor(cosh(x)));
  TENON_FUNCTION(cosh, g * Tensor(sinh(x)));
  TENON_FUNCTION(asinh, g * Tensor(rsqrt(x * x + 1.0)));
  TENON_FUNCTION(acosh, g * Tensor(rsqrt(x * x - 1.0)));
  TENON_FUNCTION(atanh, g / (1.0 - x * x));
  TENON_FUNCTION(erf, g * Tensor(exp(-(x * x))) * M_2_SQRTPI);
  TENON_FUNCTION(erfc, g * Tensor(exp(-(x * x))) * -M_2_SQRTPI);
  TENON_FUNCTION(erfinv, g * Tensor(exp(y * y)) * (1 / M_2_SQRTPI));
  TENON_FUNCTION(lgamma, g * Tensor(digamma(x)));
  ops.add(digamma, {
      .schema = "digamma(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return call(loop::Fn::digamma, x[0]); },
      .vjp = [](Vjp& v) -> Grads { return {v.grad(0) * Tensor(polygamma(1, v[0]))}; },
      .promote = Promote::int_to_float,
  });
  ops.alias(expm1, {"special_expm1"});
  ops.alias(exp2, {"special_exp2"});
  ops.alias(log1p, {"special_log1p"});
  ops.alias(asin, {"arcsin"});
  ops.alias(acos, {"arccos"});
  ops.alias(atan, {"arctan"});
  ops.alias(asinh, {"arcsinh"});
  ops.alias(acosh, {"arccosh"});
  ops.alias(atanh, {"arctanh"});
  ops.alias(erf, {"special_erf"});
  ops.alias(erfc, {"special_erfc"});
  ops.alias(erfinv, {"special_erfinv"});
  ops.alias(lgamma, {"special_gammaln"});
  ops.add({   // log Γ_p(x) = p(p - 1)/4 · log π + sum over j < p of log Γ(x - j/2)
      .schema = "mvlgamma(Tensor self, int p) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) -> Results {
        int64_t p = b.constant(1);
        b.require(p >= 1, "p: expected 1 or more, got ", p);
        Tensor x = is_floating(b[0].dtype()) ? b[0] : to(b[0], DType::f32);
        Tensor halves = arange(0, p, 1, kw("dtype", x.dtype())) / 2;
        Tensor total = sum(lgamma(unsqueeze(x, -1) - halves), Sizes{-1});
        auto count = static_cast<double>(p);
        return one(total + count * (count - 1) / 4 * std::log(M_PI));
      },
  });
  ops.alias(digamma, {"special_digamma", "special_psi"});

#define TENON_ROUNDING(handle, fn)                                                          \
  ops.add(handle, {.schema = #handle "(Tensor self) -> Tensor",                             \
                   .kind = Kind::pointwise,                                                 \
                   .meta = numeric_meta,                                                    \
                   .scalar = [](const Scalars& x) { return call(loop::Fn::fn, x[0]); },     \
                   .vjp = no_slope})
  TENON_ROUNDING(floor, floor);
  TENON_ROUNDING(ceil, ceil);
  TENON_ROUNDING(trunc, trunc);
  TENON_ROUNDING(round, round_even);
#undef TENON_ROUNDING
  ops.alias(trunc, {"fix"});
  ops.add(round_decimals, {
      .schema = "round.decimals(Tensor self, *, int decimals) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return round_at(x[0], x.call.constant(1)); },
      .vjp = no_slope,
  });
  ops.add({
      .schema = "special_round(Tensor self, *, int decimals=0) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) { return round_decimals(b[0], kw("decimals", b.arg(1))); },
  });
  ops.add({
      .schema = "frac(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return x[0] - call(loop::Fn::trunc, x[0]); },
      .vjp = [](Vjp& v) -> Grads { return {v.grad(0)}; },
  });

  ops.add(isnan, {
      .schema = "isnan(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return loop::is_nan(x[0]); },
      .promote = Promote::to_boolean,
  });
  ops.add(isinf, {
      .schema = "isinf(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return call(loop::Fn::is_inf, x[0]); },
      .promote = Promote::to_boolean,
  });
  ops.add(isfinite, {
      .schema = "isfinite(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return !(call(loop::Fn::is_inf, x[0]) || loop::is_nan(x[0])); },
      .promote = Promote::to_boolean,
  });
  ops.add({
      .schema = "isposinf(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return call(loop::Fn::is_inf, x[0]) && x[0] > 0; },
      .promote = Promote::to_boolean,
  });
  ops.add({
      .schema = "isneginf(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return call(loop::Fn::is_inf, x[0]) && x[0] < 0; },
      .promote = Promote::to_boolean,
  });
  ops.add({
      .schema = "isreal(Tensor self) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) { return ones_like(b[0], kw("dtype", DType::boolean)); },
  });
  ops.add({
      .schema = "signbit(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) -> Expr {
        if (x[0].type() == loop::Compute::f32 || x[0].type() == loop::Compute::f64)
          return call(loop::Fn::copysign, loop::constant(*x[0].arena, 1.0, x[0].type()), x[0]) < 0.0;   // -0 and -NaN have it
        return x[0] < 0;
      },
      .promote = Promote::to_boolean,
  });
  ops.add({
      .schema = "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) -> Expr {
        DType dtype = x.call.meta(0).dtype;
        if (!is_floating(dtype)) return x[0];
        double largest = largest_finite(dtype);
        auto value = [&](size_t i, double otherwise) { return x.call.given(i) ? x.call.number(i) : otherwise; };
        Expr finite = loop::select(x[0] == INFINITY, value(2, largest), loop::select(x[0] == -INFINITY, value(3, -largest), x[0]));
        return loop::select(loop::is_nan(x[0]), value(1, 0), finite);
      },
      .vjp = [](Vjp& v) -> Grads { return {kept(v.grad(0), isfinite(v[0]))}; },
  });
  ops.add(sgn, {
      .schema = "sgn(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) -> Expr { return x[0].type() == loop::Compute::boolean ? x[0] : call(loop::Fn::sign, x[0]); },
      .vjp = no_slope,
  });
  ops.add({
      .schema = "positive(Tensor(a) self) -> Tensor(a)",
      .kind = Kind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) -> Results {
        b.require(b[0].dtype() != DType::boolean, "boolean tensors are not supported, got ", b[0].meta());
        return one(b[0]);
      },
  });
  // A real tensor is its own conjugate.
  for (const char* schema : {"real(Tensor(a) self) -> Tensor(a)", "conj(Tensor(a) self) -> Tensor(a)", "resolve_conj(Tensor(a) self) -> Tensor(a)",
                             "resolve_neg(Tensor(a) self) -> Tensor(a)", "conj_physical(Tensor self) -> Tensor"})
    ops.add({
        .schema = schema,
        .kind = Kind::composite,
        .traits = {.may_alias = true},
        .decompose = [](Build& b) -> Results {
          b.supports(!is_complex(b[0].dtype()), "complex tensors are not supported yet, got ", b[0].meta());
          return one(b[0]);
        },
    });
  ops.add(angle, {
      .schema = "angle(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return loop::select(loop::is_nan(x[0]), x[0], loop::select(x[0] < 0.0, M_PI, x[0] * 0.0)); },
      .vjp = no_slope,
      .promote = Promote::int_to_float,
  });
  ops.add({
      .schema = "deg2rad(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return x[0] * (M_PI / 180); },
      .vjp = [](Vjp& v) -> Grads { return {v.grad(0) * (M_PI / 180)}; },
      .promote = Promote::int_to_float,
  });
  ops.add({
      .schema = "rad2deg(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return x[0] * (180 / M_PI); },
      .vjp = [](Vjp& v) -> Grads { return {v.grad(0) * (180 / M_PI)}; },
      .promote = Promote::int_to_float,
  });
  ops.add(sinc, {
      .schema = "sinc(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) {
        Expr t = x[0] * M_PI;
        return loop::select(x[0] == 0.0, 1.0, loop::sin(t) / t);
      },
      .vjp = [](Vjp& v) -> Grads {
        Tensor x = v[0], t = x * M_PI, below = x * x * M_PI;
        return {where(eq(below, 0.0), 0.0, v.grad(0) * ((t * cosine(t) - Tensor(sin(t))) / below))};
      },
      .promote = Promote::int_to_float,
  });
  ops.alias(sinc, {"special_sinc"});
  ops.add({
      .schema = "special_entr(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) {
        return loop::select(loop::is_nan(x[0]), x[0], loop::select(x[0] > 0.0, -x[0] * loop::log(x[0]), loop::select(x[0] == 0.0, 0.0, -INFINITY)));
      },
      .vjp = [](Vjp& v) -> Grads { return {v.grad(0) * (-Tensor(log(v[0])) - 1.0)}; },
      .promote = Promote::int_to_float,
  });
  ops.add({
      .schema = "special_ndtr(Tensor self) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) { return mul(Tensor(erf(b[0] / M_SQRT2)) + 1.0, 0.5); },
  });
}

#undef TENON_FUNCTION

}  // namespace tenon

#include "tenon/ops/elementwise.h"

#include <cmath>
#include <limits>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/convert.h"
#include "tenon/ops/create.h"
#include "tenon/rules/infer.h"
#include "tenon/ops/logic.h"
#include "tenon/ops/reduction.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/special.h"
#include "tenon/ops/views.h"

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
                   .kind = OpKind::pointwise,                                                                            \
                   .scalar = [](loop::Expr self) { return call(loop::Fn::handle, self); },                            \
                   .vjp = {{"self", [](Vjp& v) -> Tensor {                                                             \
                     [[maybe_unused]] Tensor g = v.grad(), x = v["self"], y = v.out();                                 \
                     return derivative;                                                                                \
                   }}},                                                                                                  \
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
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) { return call(loop::Fn::digamma, self); },
      .vjp = {{"self", [](Vjp& v) { return v.grad() * Tensor(polygamma(1, v["self"])); }}},
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
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        int64_t p = b.constant("p");
        b.require(p >= 1, "p: expected 1 or more, got ", p);
        Tensor x = is_floating(b["self"].dtype()) ? b["self"] : to(b["self"], DType::f32);
        Tensor halves = arange(0, p, 1, kw("dtype", x.dtype())) / 2;
        Tensor total = sum(lgamma(unsqueeze(x, -1) - halves), Sizes{-1});
        auto count = static_cast<double>(p);
        return one(total + count * (count - 1) / 4 * std::log(M_PI));
      },
  });
  ops.alias(digamma, {"special_digamma", "special_psi"});

#define TENON_ROUNDING(handle, fn)                                                          \
  ops.add(handle, {.schema = #handle "(Tensor self) -> Tensor",                             \
                   .kind = OpKind::pointwise,                                                 \
                   .meta = numeric_meta,                                                    \
                   .scalar = [](loop::Expr self) { return call(loop::Fn::fn, self); },     \
                   .vjp = {{"self", no_slope}}})
  TENON_ROUNDING(floor, floor);
  TENON_ROUNDING(ceil, ceil);
  TENON_ROUNDING(trunc, trunc);
  TENON_ROUNDING(round, round_even);
#undef TENON_ROUNDING
  ops.alias(trunc, {"fix"});
  ops.add(round_decimals, {
      .schema = "round.decimals(Tensor self, *, int decimals) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return round_at(x["self"], x.constant("decimals")); },
      .vjp = {{"self, decimals", no_slope}},
  });
  ops.add({
      .schema = "special_round(Tensor self, *, int decimals=0) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return round_decimals(b["self"], kw("decimals", b.arg("decimals"))); },
  });
  ops.add({
      .schema = "frac(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self) { return self - call(loop::Fn::trunc, self); },
      .vjp = {{"self", [](Vjp& v) { return v.grad(); }}},
  });

  ops.add(isnan, {
      .schema = "isnan(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) { return loop::is_nan(self); },
      .promote = Promote::to_boolean,
  });
  ops.add(isinf, {
      .schema = "isinf(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) { return call(loop::Fn::is_inf, self); },
      .promote = Promote::to_boolean,
  });
  ops.add(isfinite, {
      .schema = "isfinite(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) { return !(call(loop::Fn::is_inf, self) || loop::is_nan(self)); },
      .promote = Promote::to_boolean,
  });
  ops.add({
      .schema = "isposinf(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) { return call(loop::Fn::is_inf, self) && self > 0; },
      .promote = Promote::to_boolean,
  });
  ops.add({
      .schema = "isneginf(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) { return call(loop::Fn::is_inf, self) && self < 0; },
      .promote = Promote::to_boolean,
  });
  ops.add({
      .schema = "isreal(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return ones_like(b["self"], kw("dtype", DType::boolean)); },
  });
  ops.add({
      .schema = "signbit(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) -> Expr {
        if (self.type() == loop::Compute::f32 || self.type() == loop::Compute::f64)
          return call(loop::Fn::copysign, loop::constant(*self.arena, 1.0, self.type()), self) < 0.0;   // -0 and -NaN have it
        return self < 0;
      },
      .promote = Promote::to_boolean,
  });
  ops.add({
      .schema = "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](const Scalars& x) -> Expr {
        DType dtype = x.meta("self").dtype;
        if (!is_floating(dtype)) return x["self"];
        double largest = largest_finite(dtype);
        auto value = [&](size_t i, double otherwise) { return x.given(i) ? x.number(i) : otherwise; };
        Expr finite = loop::select(x["self"] == INFINITY, value(2, largest), loop::select(x["self"] == -INFINITY, value(3, -largest), x["self"]));
        return loop::select(loop::is_nan(x["self"]), value(1, 0), finite);
      },
      .vjp = {{"self", [](Vjp& v) { return kept(v.grad(), isfinite(v["self"])); }}},
  });
  ops.add(sgn, {
      .schema = "sgn(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) -> Expr { return self.type() == loop::Compute::boolean ? self : call(loop::Fn::sign, self); },
      .vjp = {{"self", no_slope}},
  });
  ops.add({
      .schema = "positive(Tensor(a) self) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) -> Results {
        b.require(b["self"].dtype() != DType::boolean, "boolean tensors are not supported, got ", b["self"].meta());
        return one(b["self"]);
      },
  });
  // A real tensor is its own conjugate.
  for (const char* schema : {"real(Tensor(a) self) -> Tensor(a)", "conj(Tensor(a) self) -> Tensor(a)", "resolve_conj(Tensor(a) self) -> Tensor(a)",
                             "resolve_neg(Tensor(a) self) -> Tensor(a)", "conj_physical(Tensor self) -> Tensor"})
    ops.add({
        .schema = schema,
        .kind = OpKind::composite,
        .traits = {.may_alias = true},
        .decompose = [](Build& b) -> Results {
          b.supports(!is_complex(b[0].dtype()), "complex tensors are not supported yet, got ", b[0].meta());
          return one(b[0]);
        },
    });
  ops.add(angle, {
      .schema = "angle(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) { return loop::select(loop::is_nan(self), self, loop::select(self < 0.0, M_PI, self * 0.0)); },
      .vjp = {{"self", no_slope}},
      .promote = Promote::int_to_float,
  });
  ops.add({
      .schema = "deg2rad(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) { return self * (M_PI / 180); },
      .vjp = {{"self", [](Vjp& v) { return v.grad() * (M_PI / 180); }}},
      .promote = Promote::int_to_float,
  });
  ops.add({
      .schema = "rad2deg(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) { return self * (180 / M_PI); },
      .vjp = {{"self", [](Vjp& v) { return v.grad() * (180 / M_PI); }}},
      .promote = Promote::int_to_float,
  });
  ops.add(sinc, {
      .schema = "sinc(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) {
        Expr t = self * M_PI;
        return loop::select(self == 0.0, 1.0, loop::sin(t) / t);
      },
      .vjp = {{"self", [](Vjp& v) -> Grads {
        Tensor x = v["self"], t = x * M_PI, below = x * x * M_PI;
        return {where(eq(below, 0.0), 0.0, v.grad(0) * ((t * cosine(t) - Tensor(sin(t))) / below))};
      }}},
      .promote = Promote::int_to_float,
  });
  ops.alias(sinc, {"special_sinc"});
  ops.add({
      .schema = "special_entr(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) {
        return loop::select(loop::is_nan(self), self, loop::select(self > 0.0, -self * loop::log(self), loop::select(self == 0.0, 0.0, -INFINITY)));
      },
      .vjp = {{"self", [](Vjp& v) { return v.grad() * (-Tensor(log(v["self"])) - 1.0); }}},
      .promote = Promote::int_to_float,
  });
  ops.add({
      .schema = "special_ndtr(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return mul(Tensor(erf(b["self"] / M_SQRT2)) + 1.0, 0.5); },
  });
}

#undef TENON_FUNCTION

}  // namespace tenon

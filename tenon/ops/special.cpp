#include "tenon/ops/special.h"

#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/ranges.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/special_functions.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle erf, erfc, erfinv, lgamma, digamma, polygamma, i0;

static Handle mvlgamma, igamma, igammac, polygamma_of, i0e, i1, i1e, erfcx, ndtri, zeta, bessel_j0, bessel_j1,
    bessel_y0, bessel_y1, bessel_i0, bessel_i1, bessel_k0, bessel_k1;

namespace {

using loop::Expr;

Metas kernel_meta(MetaCall& m) { return pointwise_meta(m); }

Tensor unknown_gradient(Vjp& v, const char* arg) {
  v.require(false, "the gradient with respect to ", arg, " is not known");
  return none;
}

// A number in the place of a tensor: a tensor without dimensions, of the dtype in which all is computed.
Results with_number(Build& b) {
  DType dtype = pointwise_meta(b).values[0].get<TensorMeta>()->dtype;
  CallArgs args(b.args.begin(), b.args.end());
  for (CallArg& arg : args)
    if (arg.is_number()) arg = Tensor(full(Sizes{}, arg, kw("dtype", dtype)));
  return call_op(*registry().find(text("aten::", b.op.schema.base())), std::move(args));
}

Tensor gamma_density(const Tensor& a, const Tensor& x) { return exp((a - 1.0) * log(x) - x - lgamma(a)); }

}  // namespace

// f is a name of special:: or of kernels/host/special.cpp; g, x and y in a derivative are the gradient, the argument
// and the result.
#define TENON_DERIVATIVE(derivative)                                      \
  {                                                                       \
    {                                                                     \
      "self", [](Vjp& v) -> Tensor {                                      \
        [[maybe_unused]] Tensor g = v.grad(), x = v["self"], y = v.out(); \
        return derivative;                                                \
      }                                                                   \
    }                                                                     \
  }
#define TENON_FUNCTION(handle, derivative)                                           \
  ops.add(handle, {.schema = #handle "(Tensor self) -> Tensor",                      \
                   .kind = OpKind::pointwise,                                        \
                   .scalar = [](Expr self) { return call(loop::Fn::handle, self); }, \
                   .vjp = TENON_DERIVATIVE(derivative),                              \
                   .promote = Promote::int_to_float});                               \
  ops.alias(handle, {"special_" #handle})
#define TENON_FORMULA(handle, spelling, f, derivative)                   \
  ops.add(handle, {.schema = spelling "(Tensor self) -> Tensor",         \
                   .kind = OpKind::pointwise,                            \
                   .scalar = [](Expr self) { return special::f(self); }, \
                   .vjp = TENON_DERIVATIVE(derivative),                  \
                   .promote = Promote::int_to_float})
#define TENON_FORMULA_OF_X(spelling, f)                    \
  ops.add({.schema = spelling "(Tensor x) -> Tensor",      \
           .kind = OpKind::pointwise,                      \
           .scalar = [](Expr x) { return special::f(x); }, \
           .promote = Promote::int_to_float})
#define TENON_POLYNOMIAL(spelling, f)                                                                            \
  ops.add({.schema = spelling "(Tensor x, Tensor n) -> Tensor",                                                  \
           .meta = kernel_meta,                                                                                  \
           .host = {.name = "special_" #f, .per_element = true},                                                 \
           .promote = Promote::int_to_float});                                                                   \
  for (const char* schema :                                                                                      \
       {spelling ".x_scalar(Scalar x, Tensor n) -> Tensor", spelling ".n_scalar(Tensor x, Scalar n) -> Tensor"}) \
  ops.add({.schema = schema, .kind = OpKind::composite, .decompose = with_number, .promote = Promote::int_to_float})

void register_special(Registry& ops) {
  TENON_FUNCTION(erf, g * exp(-(x * x)) * M_2_SQRTPI);
  TENON_FUNCTION(erfc, g * exp(-(x * x)) * -M_2_SQRTPI);
  TENON_FUNCTION(erfinv, g * exp(y * y) * (1 / M_2_SQRTPI));
  TENON_FUNCTION(digamma, g * polygamma(1, x));
  ops.alias(digamma, {"special_psi"});
  ops.add(lgamma, {
                      .schema = "lgamma(Tensor self) -> Tensor",
                      .kind = OpKind::pointwise,
                      .scalar = [](Expr self) { return call(loop::Fn::lgamma, self); },
                      .vjp = {{"self", [](Vjp& v) { return v.grad() * digamma(v["self"]); }}},
                      .promote = Promote::int_to_float,
                  });
  ops.alias(lgamma, {"special_gammaln"});
  ops.add(mvlgamma, {
                        // log Γ_p(x) = p(p - 1)/4 · log π + sum over j < p of log Γ(x - j/2)
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
  ops.alias(mvlgamma, {"special_multigammaln"});
  ops.add(polygamma, {
                         .schema = "polygamma(int n, Tensor self) -> Tensor",
                         .meta = [](MetaCall& m) -> Metas {
                           m.require(m.constant("n") >= 0, "n: expected a number that is not negative, got ",
                                     m.constant("n"));
                           return pointwise_meta(m);
                         },
                         .vjp = {{"self", [](Vjp& v) { return v.grad() * polygamma(v.constant("n") + 1, v["self"]); }}},
                         .host = {.name = "special_polygamma", .per_element = true},
                         .promote = Promote::int_to_float,
                     });
  ops.alias(polygamma, {"special_polygamma"});
  ops.add(polygamma_of, {
                            // the order of arguments that the in-place form has
                            .schema = "tenon::polygamma(Tensor self, int n) -> Tensor",
                            .kind = OpKind::composite,
                            .decompose = [](Build& b) { return polygamma(b.arg("n"), b["self"]); },
                            .to_torch = [](Build& b) { return polygamma(b.arg("n"), b["self"]); },
                        });
  ops.in_place(polygamma_of, "polygamma_(Tensor(a!) self, int n) -> Tensor(a!)");
  ops.add(igamma, {
                      .schema = "igamma(Tensor self, Tensor other) -> Tensor",
                      .meta = floating_meta,
                      .vjp = {{"self", [](Vjp& v) { return unknown_gradient(v, "self"); }},
                              {"other", [](Vjp& v) { return v.grad() * gamma_density(v["self"], v["other"]); }}},
                      .host = {.name = "special_igamma", .per_element = true},
                  });
  ops.alias(igamma, {"special_gammainc"});
  ops.add(igammac, {
                       .schema = "igammac(Tensor self, Tensor other) -> Tensor",
                       .meta = floating_meta,
                       .vjp = {{"self", [](Vjp& v) { return unknown_gradient(v, "self"); }},
                               {"other", [](Vjp& v) { return -v.grad() * gamma_density(v["self"], v["other"]); }}},
                       .host = {.name = "special_igammac", .per_element = true},
                   });
  ops.alias(igammac, {"special_gammaincc"});
  ops.add(zeta,
          {
              .schema = "special_zeta(Tensor self, Tensor other) -> Tensor",
              .meta = kernel_meta,
              .vjp = {{"self", [](Vjp& v) { return unknown_gradient(v, "self"); }},
                      {"other", [](Vjp& v) { return v.grad() * -v["self"] * zeta(v["self"] + 1.0, v["other"]); }}},
              .host = {.name = "special_zeta", .per_element = true},
              .promote = Promote::int_to_float,
          });
  for (const char* schema : {"special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor",
                             "special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor"})
    ops.add({.schema = schema, .kind = OpKind::composite, .decompose = with_number, .promote = Promote::int_to_float});

  ops.add({
      .schema = "special_entr(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar =
          [](Expr self) {
            return loop::select(
                loop::is_nan(self), self,
                loop::select(self > 0.0, -self * loop::log(self), loop::select(self == 0.0, 0.0, -INFINITY)));
          },
      .vjp = {{"self", [](Vjp& v) { return v.grad() * (-log(v["self"]) - 1.0); }}},
      .promote = Promote::int_to_float,
  });
  ops.add({
      .schema = "special_ndtr(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return mul(erf(b["self"] / M_SQRT2) + 1.0, 0.5); },
  });
  TENON_FORMULA(ndtri, "special_ndtri", ndtri, g * exp(y * y * 0.5) * std::sqrt(2 * M_PI));
  TENON_FORMULA(erfcx, "special_erfcx", erfcx, g * (x * y * 2.0 - M_2_SQRTPI));
  ops.add({
      .schema = "special_log_ndtr(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) { return special::log_ndtr(self); },
      .vjp = {{"self", [](Vjp& v) { return v.grad() / erfcx(v["self"] * -M_SQRT1_2) * std::sqrt(2 / M_PI); }}},
      .promote = Promote::int_to_float,
  });

  TENON_FORMULA(i0, "i0", i0, g * i1(x));
  ops.alias(i0, {"special_i0"});
  TENON_FORMULA(i0e, "special_i0e", i0e, g * (i1e(x) - sgn(x) * y));
  TENON_FORMULA(i1, "special_i1", i1, g * where(eq(x, 0.0), 0.5, i0(x) - y / x));
  TENON_FORMULA(i1e, "special_i1e", i1e, g * where(eq(x, 0.0), 0.5, i0e(x) - y * (sgn(x) + reciprocal(x))));
  TENON_FORMULA(bessel_j0, "special_bessel_j0", j0, -g * bessel_j1(x));
  TENON_FORMULA(bessel_j1, "special_bessel_j1", j1, g * where(eq(x, 0.0), 0.5, bessel_j0(x) - y / x));
  TENON_FORMULA(bessel_y0, "special_bessel_y0", y0, -g * bessel_y1(x));
  TENON_FORMULA(bessel_y1, "special_bessel_y1", y1, g * (bessel_y0(x) - y / x));
  TENON_FORMULA(bessel_i0, "special_modified_bessel_i0", i0, g * bessel_i1(x));
  TENON_FORMULA(bessel_i1, "special_modified_bessel_i1", i1, g * where(eq(x, 0.0), 0.5, bessel_i0(x) - y / x));
  TENON_FORMULA(bessel_k0, "special_modified_bessel_k0", k0, -g * bessel_k1(x));
  TENON_FORMULA(bessel_k1, "special_modified_bessel_k1", k1, -g * (bessel_k0(x) + y / x));
  TENON_FORMULA_OF_X("special_scaled_modified_bessel_k0", k0e);
  TENON_FORMULA_OF_X("special_scaled_modified_bessel_k1", k1e);
  TENON_FORMULA_OF_X("special_spherical_bessel_j0", spherical_j0);
  ops.add({.schema = "special_airy_ai(Tensor x) -> Tensor",
           .meta = kernel_meta,
           .host = {.name = "special_airy_ai", .per_element = true},
           .promote = Promote::int_to_float});

  TENON_POLYNOMIAL("special_chebyshev_polynomial_t", chebyshev_t);
  TENON_POLYNOMIAL("special_chebyshev_polynomial_u", chebyshev_u);
  TENON_POLYNOMIAL("special_chebyshev_polynomial_v", chebyshev_v);
  TENON_POLYNOMIAL("special_chebyshev_polynomial_w", chebyshev_w);
  TENON_POLYNOMIAL("special_shifted_chebyshev_polynomial_t", shifted_chebyshev_t);
  TENON_POLYNOMIAL("special_shifted_chebyshev_polynomial_u", shifted_chebyshev_u);
  TENON_POLYNOMIAL("special_shifted_chebyshev_polynomial_v", shifted_chebyshev_v);
  TENON_POLYNOMIAL("special_shifted_chebyshev_polynomial_w", shifted_chebyshev_w);
  TENON_POLYNOMIAL("special_hermite_polynomial_h", hermite_h);
  TENON_POLYNOMIAL("special_hermite_polynomial_he", hermite_he);
  TENON_POLYNOMIAL("special_laguerre_polynomial_l", laguerre);
  TENON_POLYNOMIAL("special_legendre_polynomial_p", legendre);
}

#undef TENON_DERIVATIVE
#undef TENON_FUNCTION
#undef TENON_FORMULA
#undef TENON_FORMULA_OF_X
#undef TENON_POLYNOMIAL

}  // namespace tenon

#include "tenon/ops/powers.h"

#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/complex_functions.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/where.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle pow_scalar, pow_tensor, pow_base, square, sqrt, rsqrt, exp, exp2, expm1, log, log2, log10, log1p, xlogy,
    logaddexp, hypot;

static Handle xlog1py, xlogy_scalar_self, xlogy_scalar_other, float_power, float_power_scalar, ldexp;

namespace {

using loop::Expr;

Results power_in_double(Build& b) {
  auto wide = [](const CallArg& a) -> CallArg {
    if (auto* t = a.get<Tensor>()) return to(*t, is_complex(t->dtype()) ? DType::c128 : DType::f64);
    return a;
  };
  const CallArg &self = b.arg("self"), &exponent = b.arg("exponent");
  CallArg power = wide(exponent), base = wide(self);  // in the order of PyTorch's graphs
  if (!self.is<Tensor>()) return pow_base(base, power);
  return exponent.is<Tensor>() ? pow_tensor(base, power) : pow_scalar(base, power);
}

Expr x_log_y(Expr self, Expr other) {
  return loop::select(loop::is_nan(other), other, loop::select(self == 0.0, 0.0, self * loop::log(other)));
}
Expr x_log1p_y(Expr self, Expr other) {
  return loop::select(loop::is_nan(other), other, loop::select(self == 0.0, 0.0, self * loop::log1p(other)));
}

// Small exponents as PyTorch has them: products, which are exact where the exponential of a logarithm is not.
Results complex_power(Build& b) {
  Complex z = operand(b, "self");
  bool real = !b.arg("exponent").is<std::complex<double>>();
  double p = real ? b.number("exponent") : 0;
  if (!real || (p != 2 && p != 3 && p != 1 && std::fabs(p) != 0.5 && p != -1 && p != -2))
    return one(joined(complex::pow(z, operand(b, "exponent"))));
  if (p == 1) return one(joined(z));
  if (p == 2) return one(joined(z * z));
  if (p == 3) return one(joined(z * z * z));
  if (p == -2) return one(joined(complex::reciprocal(z * z)));
  return one(joined(p == 0.5 ? complex::sqrt(z) : p == -0.5 ? complex::rsqrt(z) : complex::reciprocal(z)));
}

}  // namespace

// A function of loop:: by its own name; g, x and y are the gradient, the argument and the result.
#define TENON_FUNCTION(handle, derivative)                                                      \
  ops.add(handle, {.schema = #handle "(Tensor self) -> Tensor",                                 \
                   .kind = OpKind::pointwise,                                                   \
                   .scalar = [](Expr self) { return call(loop::Fn::handle, self); },            \
                   .vjp = {{"self",                                                             \
                            [](Vjp& v) -> Tensor {                                              \
                              [[maybe_unused]] Tensor g = v.grad(), x = v["self"], y = v.out(); \
                              return derivative;                                                \
                            }}},                                                                \
                   .promote = Promote::int_to_float,                                            \
                   .complex = complex_of_one<complex::handle>})

void register_powers(Registry& ops) {
  TENON_FUNCTION(sqrt, g / (y * 2.0));
  TENON_FUNCTION(rsqrt, g * (y * y * y) * -0.5);
  TENON_FUNCTION(exp, g * y);
  TENON_FUNCTION(exp2, g * y * M_LN2);
  TENON_FUNCTION(expm1, g * (y + 1.0));
  TENON_FUNCTION(log, g / x);
  TENON_FUNCTION(log2, g / (x * M_LN2));
  TENON_FUNCTION(log10, g / (x * M_LN10));
  TENON_FUNCTION(log1p, g / (x + 1.0));
  ops.alias(exp2, {"special_exp2"});
  ops.alias(expm1, {"special_expm1"});
  ops.alias(log1p, {"special_log1p"});

  ops.add(square, {
                      .schema = "square(Tensor self) -> Tensor",
                      .kind = OpKind::composite,
                      .decompose = [](Build& b) { return pow_scalar(b["self"], 2); },
                      .complex = complex_of_one<complex::square>,
                  });
  ops.add(pow_scalar, {
                          .schema = "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
                          .kind = OpKind::pointwise,
                          .scalar = [](const Scalars& s) -> Expr {
                            Expr x = s["self"];
                            double p = s.number("exponent");
                            if (p == 2) return x * x;
                            if (p == 3) return x * x * x;
                            if (p == 0.5 && x.type() != loop::Compute::i64) return loop::sqrt(x);
                            if (p == -0.5) return loop::rsqrt(x);
                            if (p == -1 && x.type() != loop::Compute::i64) return call(loop::Fn::reciprocal, x);
                            return pow(x, s["exponent"]);
                          },
                          .vjp = {{"self",
                                   [](Vjp& v) -> Tensor {  // p * x^(p-1), and 0 where p is 0
                                     double p = v.number("exponent");
                                     if (p == 0) return zeros_like(v.grad());
                                     return v.grad() * (pow_scalar(v["self"], p - 1) * p);
                                   }}},
                          .complex = complex_power,
                      });
  ops.add(pow_tensor, {
                          .schema = "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
                          .kind = OpKind::pointwise,
                          .scalar = [](Expr self, Expr exponent) { return pow(self, exponent); },
                          .vjp = {{"self",
                                   [](Vjp& v) {
                                     Tensor x = v["self"], p = v["exponent"];
                                     return where(eq(p, 0.0), 0.0, v.grad() * (p * pow_tensor(x, p - 1.0)));
                                   }},
                                  {"exponent",
                                   [](Vjp& v) {
                                     Tensor x = v["self"], p = v["exponent"];
                                     return where(logical_and(eq(x, 0.0), ge(p, 0.0)), 0.0,
                                                  v.grad() * (v.out() * log(x)));
                                   }}},
                          .complex = complex_of_two<complex::pow>,
                      });
  ops.add(pow_base, {
                        .schema = "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
                        .kind = OpKind::pointwise,
                        .scalar = [](Expr self, Expr exponent) { return pow(self, exponent); },
                        .vjp = {{"exponent",
                                 [](Vjp& v) -> Tensor {
                                   double base = v.number("self");
                                   Tensor slope = v.grad() * (v.out() * std::log(base));
                                   return base == 0 ? Tensor(where(ge(v["exponent"], 0.0), 0.0, slope)) : slope;
                                 }}},
                        .complex = complex_of_two<complex::pow>,
                    });
  ops.in_place(pow_scalar, "pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)");
  ops.in_place(pow_tensor, "pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)");
  ops.add(float_power, {
                           .schema = "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
                           .kind = OpKind::composite,
                           .decompose = power_in_double,
                       });
  ops.overload(float_power, float_power_scalar, "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor");
  ops.overload(float_power, {"float_power.Scalar(Scalar self, Tensor exponent) -> Tensor"});
  ops.in_place(float_power, "float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)");
  ops.in_place(float_power_scalar, "float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)");
  ops.add(ldexp, {
                     .schema = "ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
                     .kind = OpKind::composite,
                     .decompose = [](Build& b) { return mul(b["self"], pow_base(2.0, b["other"])); },
                 });
  ops.in_place(ldexp, "ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)");
  ops.add({
      .schema = "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)",
      .meta = [](MetaCall& m) -> Metas {
        m.require(is_floating(m.meta("self").dtype), "expected a floating point tensor, got ", m.meta("self"));
        TensorMeta mantissa = *pointwise_meta(m).values[0].get<TensorMeta>(), exponent = mantissa;
        exponent.dtype = DType::i32;
        return {mantissa, exponent};
      },
      .vjp = {{"self", [](Vjp& v) { return v.grad() / pow_base(2.0, v.out(1)); }}},
      .host = {.name = "frexp", .per_element = true},
  });
  ops.add(hypot, {
                     .schema = "hypot(Tensor self, Tensor other) -> Tensor",
                     .kind = OpKind::pointwise,
                     .meta = floating_meta,
                     .scalar = [](Expr self, Expr other) { return call(loop::Fn::hypot, self, other); },
                     .vjp = {{"self", [](Vjp& v) { return v.grad() * (v["self"] / v.out()); }},
                             {"other", [](Vjp& v) { return v.grad() * (v["other"] / v.out()); }}},
                 });

  ops.add(xlogy, {
                     .schema = "xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
                     .kind = OpKind::pointwise,
                     .scalar = x_log_y,
                     .vjp = {{"self",
                              [](Vjp& v) {
                                Tensor x = v["self"], y = v["other"];
                                return where(logical_and(eq(x, 0.0), le(y, 0.0)), 0.0, xlogy(v.grad(), y));
                              }},
                             {"other", [](Vjp& v) { return mul(v.grad(), v.arg("self")) / v["other"]; }}},
                     .promote = Promote::int_to_float,
                 });
  ops.overload(xlogy, xlogy_scalar_self, "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor");
  ops.add(xlogy_scalar_other, {
                                  .schema = "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",
                                  .kind = OpKind::pointwise,
                                  .scalar = x_log_y,
                                  .vjp = {{"self",
                                           [](Vjp& v) -> Tensor {
                                             double y = v.number("other");
                                             Tensor slope = v.grad() * std::log(y);
                                             return y > 0 ? slope : Tensor(where(eq(v["self"], 0.0), 0.0, slope));
                                           }}},
                                  .promote = Promote::int_to_float,
                              });
  ops.alias(xlogy, {"special_xlogy"});
  ops.alias(xlogy_scalar_other, {"special_xlogy.other_scalar"});
  ops.alias(xlogy_scalar_self, {"special_xlogy.self_scalar"});
  ops.add(xlog1py, {
                       .schema = "special_xlog1py(Tensor self, Tensor other) -> Tensor",
                       .kind = OpKind::pointwise,
                       .scalar = x_log1p_y,
                       .vjp = {{"self",
                                [](Vjp& v) {
                                  Tensor x = v["self"], y = v["other"];
                                  return where(logical_and(eq(x, 0.0), le(y, -1.0)), 0.0, v.grad() * log1p(y));
                                }},
                               {"other", [](Vjp& v) { return v.grad() * v["self"] / (v["other"] + 1.0); }}},
                       .promote = Promote::int_to_float,
                   });
  for (const char* schema : {"special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor",
                             "special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor"})
    ops.add({
        .schema = schema,
        .kind = OpKind::composite,
        .decompose =
            [](Build& b) {
              DType dtype = pointwise_meta(b).values[0].get<TensorMeta>()->dtype;
              auto operand = [&](const char* name) {
                return b.arg(name).is<Tensor>() ? b[name] : Tensor(full(Sizes{}, b.arg(name), kw("dtype", dtype)));
              };
              return xlog1py(operand("self"), operand("other"));
            },
        .promote = Promote::int_to_float,
    });
  ops.add(logaddexp, {
                         .schema = "logaddexp(Tensor self, Tensor other) -> Tensor",
                         .kind = OpKind::pointwise,
                         .meta = floating_meta,
                         .scalar =
                             [](Expr self, Expr other) {
                               Expr sum = max(self, other) + loop::log1p(loop::exp(-loop::abs(self - other)));
                               return loop::select(call(loop::Fn::is_inf, self) && self == other, self, sum);
                             },
                         .vjp = {{"self", [](Vjp& v) { return v.grad() / (exp(v["other"] - v["self"]) + 1.0); }},
                                 {"other", [](Vjp& v) { return v.grad() / (exp(v["self"] - v["other"]) + 1.0); }}},
                         .complex = complex_of_two<complex::logaddexp>,
                     });
  ops.add({
      .schema = "logaddexp2(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar =
          [](Expr self, Expr other) {
            Expr sum = max(self, other) + loop::log1p(call(loop::Fn::exp2, -loop::abs(self - other))) * M_LOG2E;
            return loop::select(call(loop::Fn::is_inf, self) && self == other, self, sum);
          },
      .vjp = {{"self", [](Vjp& v) { return v.grad() / (pow_base(2, v["other"] - v["self"]) + 1.0); }},
              {"other", [](Vjp& v) { return v.grad() / (pow_base(2, v["self"] - v["other"]) + 1.0); }}},
  });
}

#undef TENON_FUNCTION

}  // namespace tenon

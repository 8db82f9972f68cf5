#include "tenon/ops/comparison.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/complex_functions.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/where.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle eq, ne, lt, le, gt, ge, maximum, minimum, fmin, fmax, isclose, isnan, isinf, isfinite;

static Handle eq_scalar, ne_scalar, lt_scalar, le_scalar, gt_scalar, ge_scalar;

namespace {

using loop::Expr;

bool boolean(Expr x) { return x.type() == loop::Compute::boolean; }

// Where one of two numbers is NaN the other is taken; equal ones share.
Grads tied_gradients_without_nan(Vjp& v, bool larger) {
  Tensor g = v.grad(), a = v["self"], b = v["other"], half = g / 2.0;
  Tensor first = logical_or(larger ? gt(a, b) : lt(a, b), isnan(b)), tied = eq(a, b);
  return {where(tied, half, where(first, g, 0.0)), where(tied, half, where(first, 0.0, g))};
}

}  // namespace

Grads tied_gradients(const Tensor& g, const Tensor& a, const Tensor& b, bool larger) {
  Tensor half = where(eq(a, b), g / 2.0, g);
  Tensor first_loses = larger ? lt(a, b) : gt(a, b), second_loses = larger ? gt(a, b) : lt(a, b);
  return {where(first_loses, 0.0, half), where(second_loses, 0.0, half)};
}

static Results complex_closeness(Build& b) {
  Tensor x = b["self"], y = b["other"], away = abs(sub(x, y));
  Tensor near = logical_and(isfinite(away), le(away, Tensor(abs(y)) * b.number("rtol") + b.number("atol")));
  Tensor close = logical_or(eq(x, y), near);
  if (b.flag("equal_nan")) close = logical_or(close, logical_and(isnan(x), isnan(y)));
  return one(close);
}

#define TENON_COMPARISON(handle, symbol, ...)                                         \
  ops.add(handle, {.schema = #handle ".Tensor(Tensor self, Tensor other) -> Tensor",  \
                   .kind = OpKind::pointwise,                                         \
                   .scalar = [](Expr self, Expr other) { return self symbol other; }, \
                   .promote = Promote::to_boolean,                                    \
                   __VA_ARGS__});                                                     \
  ops.overload(handle, handle##_scalar, #handle ".Scalar(Tensor self, Scalar other) -> Tensor")

void register_comparison(Registry& ops) {
  TENON_COMPARISON(eq, ==, .complex = real_of_two<complex::eq>);
  TENON_COMPARISON(ne, !=, .complex = real_of_two<complex::ne>);
  TENON_COMPARISON(lt, <, );
  TENON_COMPARISON(le, <=, );
  TENON_COMPARISON(gt, >, );
  TENON_COMPARISON(ge, >=, );
  ops.alias(ne, {"not_equal.Tensor"});
  ops.alias(ne_scalar, {"not_equal.Scalar"});
  ops.alias(lt, {"less.Tensor"});
  ops.alias(lt_scalar, {"less.Scalar"});
  ops.alias(le, {"less_equal.Tensor"});
  ops.alias(le_scalar, {"less_equal.Scalar"});
  ops.alias(gt, {"greater.Tensor"});
  ops.alias(gt_scalar, {"greater.Scalar"});
  ops.alias(ge, {"greater_equal.Tensor"});
  ops.alias(ge_scalar, {"greater_equal.Scalar"});

  ops.add(maximum,
          {
              .schema = "maximum(Tensor self, Tensor other) -> Tensor",
              .kind = OpKind::pointwise,
              .scalar = [](Expr self, Expr other) { return boolean(self) ? self || other : max(self, other); },
              .vjp = {{"self, other", [](Vjp& v) { return tied_gradients(v.grad(), v["self"], v["other"], true); }}},
          });
  ops.add(minimum,
          {
              .schema = "minimum(Tensor self, Tensor other) -> Tensor",
              .kind = OpKind::pointwise,
              .scalar = [](Expr self, Expr other) { return boolean(self) ? self && other : min(self, other); },
              .vjp = {{"self, other", [](Vjp& v) { return tied_gradients(v.grad(), v["self"], v["other"], false); }}},
          });
  ops.alias(maximum, {"max.other"});
  ops.alias(minimum, {"min.other"});
  ops.add(fmin,
          {
              .schema = "fmin(Tensor self, Tensor other) -> Tensor",
              .kind = OpKind::pointwise,
              .scalar = [](Expr self,
                           Expr other) { return boolean(self) ? self && other : call(loop::Fn::fmin, self, other); },
              .vjp = {{"self, other", [](Vjp& v) { return tied_gradients_without_nan(v, false); }}},
          });
  ops.add(fmax,
          {
              .schema = "fmax(Tensor self, Tensor other) -> Tensor",
              .kind = OpKind::pointwise,
              .scalar = [](Expr self,
                           Expr other) { return boolean(self) ? self || other : call(loop::Fn::fmax, self, other); },
              .vjp = {{"self, other", [](Vjp& v) { return tied_gradients_without_nan(v, true); }}},
          });

  ops.add(isclose, {
                       .schema = "isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float "
                                 "atol=1e-08, bool equal_nan=False) -> Tensor",
                       .kind = OpKind::pointwise,
                       .meta = [](MetaCall& m) -> Metas {
                         m.require(m.meta("self").dtype == m.meta("other").dtype, "expected tensors of one dtype, got ",
                                   m.meta("self"), " and ", m.meta("other"));
                         m.require(m.number("rtol") >= 0 && m.number("atol") >= 0,
                                   "rtol and atol: expected numbers that are not negative, got ", m.number("rtol"),
                                   " and ", m.number("atol"));
                         return pointwise_meta(m);
                       },
                       .scalar =
                           [](const Scalars& x) {
                             Expr close = x["self"] == x["other"];
                             if (x.flag("equal_nan"))
                               close = close || (loop::is_nan(x["self"]) && loop::is_nan(x["other"]));
                             loop::Compute type = x["self"].type() == loop::Compute::f64
                                                      ? loop::Compute::f64
                                                      : loop::Compute::f32;  // integers too
                             Expr a = cast(x["self"], type), b = cast(x["other"], type), error = loop::abs(a - b);
                             Expr finite = !(call(loop::Fn::is_inf, error) || loop::is_nan(error));
                             return close || (finite && error <= x.number("atol") + loop::abs(x.number("rtol") * b));
                           },
                       .promote = Promote::to_boolean,
                       .complex = complex_closeness,
                   });
  ops.add(isnan, {
                     .schema = "isnan(Tensor self) -> Tensor",
                     .kind = OpKind::pointwise,
                     .scalar = [](Expr self) { return loop::is_nan(self); },
                     .promote = Promote::to_boolean,
                     .complex = real_of_one<complex::isnan>,
                 });
  ops.add(isinf, {
                     .schema = "isinf(Tensor self) -> Tensor",
                     .kind = OpKind::pointwise,
                     .scalar = [](Expr self) { return call(loop::Fn::is_inf, self); },
                     .promote = Promote::to_boolean,
                     .complex = real_of_one<complex::isinf>,
                 });
  ops.add(isfinite, {
                        .schema = "isfinite(Tensor self) -> Tensor",
                        .kind = OpKind::pointwise,
                        .scalar = [](Expr self) { return !(call(loop::Fn::is_inf, self) || loop::is_nan(self)); },
                        .promote = Promote::to_boolean,
                        .complex = real_of_one<complex::isfinite>,
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
}

#undef TENON_COMPARISON

}  // namespace tenon

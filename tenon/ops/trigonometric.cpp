#include "tenon/ops/trigonometric.h"

#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/complex_functions.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, atan2;

static Handle sinc;

using loop::Expr;

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

void register_trigonometric(Registry& ops) {
  TENON_FUNCTION(sin, g * cos(x));
  TENON_FUNCTION(cos, g * -sin(x));
  TENON_FUNCTION(tan, g * (y * y + 1.0));
  TENON_FUNCTION(asin, g * rsqrt(1.0 - x * x));
  TENON_FUNCTION(acos, g * -rsqrt(1.0 - x * x));
  TENON_FUNCTION(atan, g / (x * x + 1.0));
  TENON_FUNCTION(sinh, g * cosh(x));
  TENON_FUNCTION(cosh, g * sinh(x));
  TENON_FUNCTION(asinh, g * rsqrt(x * x + 1.0));
  TENON_FUNCTION(acosh, g * rsqrt(x * x - 1.0));
  TENON_FUNCTION(atanh, g / (1.0 - x * x));
  ops.alias(asin, {"arcsin"});
  ops.alias(acos, {"arccos"});
  ops.alias(atan, {"arctan"});
  ops.alias(asinh, {"arcsinh"});
  ops.alias(acosh, {"arccosh"});
  ops.alias(atanh, {"arctanh"});
  ops.add(atan2, {
                     .schema = "atan2(Tensor self, Tensor other) -> Tensor",
                     .kind = OpKind::pointwise,
                     .scalar = [](Expr self, Expr other) { return call(loop::Fn::atan2, self, other); },
                     .vjp = {{"self, other",
                              [](Vjp& v) -> Grads {
                                Tensor a = v["self"], b = v["other"], square = a * a + b * b;
                                Tensor slope = where(eq(square, 0.0), 0.0, v.grad() / square);
                                return {slope * b, slope * -a};
                              }}},
                     .promote = Promote::int_to_float,
                 });
  ops.alias(atan2, {"arctan2"});
  ops.add(sinc, {
                    .schema = "sinc(Tensor self) -> Tensor",
                    .kind = OpKind::pointwise,
                    .scalar =
                        [](Expr self) {
                          Expr t = self * M_PI;
                          return loop::select(self == 0.0, 1.0, loop::sin(t) / t);
                        },
                    .vjp = {{"self",
                             [](Vjp& v) {
                               Tensor x = v["self"], t = x * M_PI, below = x * x * M_PI;
                               return where(eq(below, 0.0), 0.0, v.grad() * ((t * cos(t) - sin(t)) / below));
                             }}},
                    .promote = Promote::int_to_float,
                    .complex = complex_of_one<complex::sinc>,
                });
  ops.alias(sinc, {"special_sinc"});
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
}

#undef TENON_FUNCTION

}  // namespace tenon

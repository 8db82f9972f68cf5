#include "tenon/ops/sign.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/complex_functions.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/where.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle abs, sign, sgn, signbit;

static Handle copysign;

namespace {

using loop::Expr;

bool boolean(Expr x) { return x.type() == loop::Compute::boolean; }

}  // namespace

void register_sign(Registry& ops) {
  ops.add(abs, {
                   .schema = "abs(Tensor self) -> Tensor",
                   .kind = OpKind::pointwise,
                   .meta = numeric_meta,
                   .scalar = [](Expr self) { return loop::abs(self); },
                   .vjp = {{"self", [](Vjp& v) { return v.grad() * sign(v["self"]); }}},
                   .complex = real_of_one<complex::abs>,
               });
  ops.alias(abs, {"absolute"});
  ops.add(sign, {
                    .schema = "sign(Tensor self) -> Tensor",
                    .kind = OpKind::pointwise,
                    .scalar = [](Expr self) { return boolean(self) ? self : call(loop::Fn::sign, self); },
                    .vjp = {{"self", zero_gradient}},
                });
  ops.add(sgn, {
                   .schema = "sgn(Tensor self) -> Tensor",
                   .kind = OpKind::pointwise,
                   .scalar = [](Expr self) { return boolean(self) ? self : call(loop::Fn::sign, self); },
                   .vjp = {{"self", zero_gradient}},
                   .complex = complex_of_one<complex::sgn>,
               });
  ops.add(signbit, {
                       .schema = "signbit(Tensor self) -> Tensor",
                       .kind = OpKind::pointwise,
                       .scalar = [](Expr self) -> Expr {
                         if (self.type() == loop::Compute::f32 || self.type() == loop::Compute::f64)
                           return call(loop::Fn::copysign, loop::constant(*self.arena, 1.0, self.type()), self) <
                                  0.0;  // -0 and -NaN have it
                         return self < 0;
                       },
                       .promote = Promote::to_boolean,
                   });
  ops.add(copysign,
          {
              .schema = "copysign.Tensor(Tensor self, Tensor other) -> Tensor",
              .kind = OpKind::pointwise,
              .scalar = [](Expr self, Expr other) { return call(loop::Fn::copysign, self, other); },
              .vjp = {{"self", [](Vjp& v) { return where(eq(v["self"], 0.0), 0.0, v.grad() * (v.out() / v["self"])); }},
                      {"other", zero_gradient}},
              .promote = Promote::int_to_float,
          });
  ops.overload(copysign, {"copysign.Scalar(Tensor self, Scalar other) -> Tensor"});
  ops.add({
      .schema = "heaviside(Tensor self, Tensor values) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.meta("self").dtype == m.meta("values").dtype, "expected tensors of one dtype, got ", m.meta("self"),
                  " and ", m.meta("values"));
        return pointwise_meta(m);
      },
      .scalar = [](Expr self, Expr values) -> Expr {
        if (boolean(self)) return self || values;
        return select(self == 0, values, cast(self > 0, self.type()));
      },
  });
}

}  // namespace tenon

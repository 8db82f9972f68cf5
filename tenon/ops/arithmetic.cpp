#include "tenon/ops/arithmetic.h"

#include "tenon/ops/complex.h"
#include "tenon/ops/complex_functions.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/views.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle add, sub, rsub, mul, div, div_mode, floor_divide, remainder, fmod, neg, reciprocal, addcmul, addcdiv, lerp;

static Handle sub_scalar, rsub_tensor, mul_scalar, div_scalar, div_scalar_mode;

Tensor operator-(double a, const Tensor& b) { return rsub(b, a); }
Tensor operator/(double a, const Tensor& b) { return mul(reciprocal(b), a); }

namespace {

using loop::Expr;

Tensor scaled(const Tensor& g, const ArgsView& v, const char* alpha) {
  return v.number(alpha) == 1 ? g : Tensor(mul(g, v.arg(alpha)));
}

bool boolean(Expr x) { return x.type() == loop::Compute::boolean; }

// Among booleans a sum is "or" and a product "and".
Expr product(Expr self, Expr other) { return boolean(self) ? self && other : self * other; }
Expr scaled_sum(const Scalars& x) {
  Expr self = x["self"], other = x["other"], alpha = x["alpha"];
  if (boolean(self)) return self || (other && alpha);
  return x.number("alpha") == 1 ? self + other : self + other * alpha;
}

Expr rounded_division(const Scalars& x) {
  Expr self = x["self"], other = x["other"];
  if (!x.given("rounding_mode")) {  // true division: integers become floats
    auto real = [](Expr e) { return e.type() == loop::Compute::f64 ? e : cast(e, loop::Compute::f32); };
    return real(self) / real(other);
  }
  const std::string& mode = x.string("rounding_mode");
  if (mode == "floor") return call(loop::Fn::floor_div, self, other);
  x.require(mode == "trunc", "rounding_mode: expected None, 'trunc' or 'floor', got ", quoted(mode));
  if (self.type() == loop::Compute::i64) return call(loop::Fn::div, self, other);  // integer division truncates
  // As PyTorch: a quotient of a narrow dtype is rounded to it first.
  return call(loop::Fn::trunc, round_to(self / other, common_dtype(x, "self, other")));
}

Metas rounded_division_meta(MetaCall& m) {
  if (m.given("rounding_mode")) return numeric_meta(m);
  return *infer(div.op(), CallArgs{m.arg("self"), m.arg("other")});
}

// x - y * round(x / y): the derivative by y is minus the rounded quotient.
Tensor rounded_quotient_gradient(Vjp& v, const char* rounding) {
  return -v.grad() * div_mode(v["self"], v["other"], kw("rounding_mode", std::string(rounding)));
}

Metas same_dtypes(MetaCall& m) {
  const TensorMeta& self = m.meta("self");
  for (size_t i = 0; i < m.args.size(); ++i)
    if (m.is_tensor(i))
      m.require(m.meta(i).dtype == self.dtype || m.meta(i).rank() == 0, "expected tensors of one dtype, got ", self,
                " and ", m.meta(i));
  return pointwise_meta(m);
}

// From the nearer end, so that both ends are met exactly.
Expr interpolated(Expr self, Expr end, Expr weight) {
  Expr step = end - self;
  return loop::select(loop::abs(weight) < 0.5, self + weight * step, end - step * (1.0 - weight));
}

template <int sign>
Results complex_sum(Build& b) {
  Complex other = operand(b, "other");
  if (!b.arg("alpha").is<SymInt>() || b.number("alpha") != 1) other = operand(b, "alpha") * other;
  return one(joined(sign > 0 ? operand(b, "self") + other : operand(b, "self") - other));
}

Results complex_interpolation(Build& b) {
  Complex self = operand(b, "self");
  return one(joined(self + operand(b, "weight") * (operand(b, "end") - self)));
}

Metas integral_meta(MetaCall& m) {
  m.require(is_integral(common_dtype(m)), "expected integers, got ", describe(m.arg("self")), " and ",
            describe(m.arg("other")));
  return pointwise_meta(m);
}

}  // namespace

void register_arithmetic(Registry& ops) {
  ops.add(add, {
                   .schema = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                   .kind = OpKind::pointwise,
                   .traits = {.takes_numbers = true},
                   .scalar = scaled_sum,
                   .vjp = {{"self", [](Vjp& v) { return v.grad(); }},
                           {"other", [](Vjp& v) { return scaled(v.grad(), v, "alpha"); }}},
                   .promotes = "self, other",
                   .complex = complex_sum<1>,
               });
  ops.overload(add, {"add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor"});
  ops.add(sub, {
                   .schema = "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                   .kind = OpKind::pointwise,
                   .traits = {.takes_numbers = true},
                   .meta = numeric_meta,
                   .scalar =
                       [](const Scalars& x) {
                         return x.number("alpha") == 1 ? x["self"] - x["other"] : x["self"] - x["other"] * x["alpha"];
                       },
                   .vjp = {{"self", [](Vjp& v) { return v.grad(); }},
                           {"other", [](Vjp& v) { return -scaled(v.grad(), v, "alpha"); }}},
                   .promotes = "self, other",
                   .complex = complex_sum<-1>,
               });
  ops.overload(sub, sub_scalar, "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor");
  ops.alias(sub, {"subtract.Tensor"});
  ops.alias(sub_scalar, {"subtract.Scalar"});
  ops.add(rsub_tensor, {
                           .schema = "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
                           .kind = OpKind::pointwise,
                           .meta = numeric_meta,
                           .scalar =
                               [](const Scalars& x) {
                                 return x.number("alpha") == 1 ? x["other"] - x["self"]
                                                               : x["other"] - x["self"] * x["alpha"];
                               },
                           .vjp = {{"self", [](Vjp& v) { return -scaled(v.grad(), v, "alpha"); }},
                                   {"other", [](Vjp& v) { return v.grad(); }}},
                           .promotes = "self, other",
                           .complex = [](Build& b) { return sub(b["other"], b["self"], kw("alpha", b.arg("alpha"))); },
                       });
  ops.overload(rsub_tensor, rsub, "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor");
  ops.add(mul, {
                   .schema = "mul.Tensor(Tensor self, Tensor other) -> Tensor",
                   .kind = OpKind::pointwise,
                   .traits = {.takes_numbers = true},
                   .scalar = product,
                   .vjp = {{"self", [](Vjp& v) { return mul(v.grad(), v.arg("other")); }},
                           {"other", [](Vjp& v) { return v.grad() * v["self"]; }}},
                   .complex = complex_of_two<complex::product>,
               });
  ops.overload(mul, mul_scalar, "mul.Scalar(Tensor self, Scalar other) -> Tensor");
  ops.alias(mul, {"multiply.Tensor"});
  ops.alias(mul_scalar, {"multiply.Scalar"});
  ops.add(div, {
                   .schema = "div.Tensor(Tensor self, Tensor other) -> Tensor",
                   .kind = OpKind::pointwise,
                   .traits = {.takes_numbers = true},
                   .scalar = [](Expr self, Expr other) { return self / other; },
                   .vjp = {{"self", [](Vjp& v) { return div(v.grad(), v.arg("other")); }},
                           {"other", [](Vjp& v) { return -v.grad() * (v.out() / v["other"]); }}},
                   .promote = Promote::int_to_float,
                   .complex = complex_of_two<complex::quotient>,
               });
  ops.overload(div, div_scalar, "div.Scalar(Tensor self, Scalar other) -> Tensor");
  ops.alias(div, {"divide.Tensor", "true_divide.Tensor"});
  ops.alias(div_scalar, {"divide.Scalar", "true_divide.Scalar"});
  ops.add(div_mode, {
                        .schema = "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
                        .kind = OpKind::pointwise,
                        .traits = {.takes_numbers = true},
                        .meta = rounded_division_meta,
                        .scalar = rounded_division,
                        .vjp = {{"self",
                                 [](Vjp& v) {
                                   return v.given("rounding_mode") ? zeros_like(v.grad())
                                                                   : div(v.grad(), v.arg("other"));
                                 }},
                                {"other",
                                 [](Vjp& v) -> Tensor {
                                   if (v.given("rounding_mode")) return zeros_like(v.grad());
                                   return -v.grad() * (v.out() / v["other"]);
                                 }}},
                        .promotes = "self, other",
                        .complex = [](Build& b) -> Results {
                          b.require(!b.given("rounding_mode"), "complex numbers cannot be divided with rounding");
                          return div(b.arg("self"), b.arg("other"));
                        },
                    });
  ops.overload(div_mode, div_scalar_mode,
               "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor");
  ops.alias(div_mode, {"divide.Tensor_mode"});
  ops.alias(div_scalar_mode, {"divide.Scalar_mode"});
  ops.add(floor_divide, {
                            .schema = "floor_divide(Tensor self, Tensor other) -> Tensor",
                            .kind = OpKind::pointwise,
                            .meta = numeric_meta,
                            .scalar = [](Expr self, Expr other) { return call(loop::Fn::floor_div, self, other); },
                        });
  ops.overload(floor_divide, {"floor_divide.Scalar(Tensor self, Scalar other) -> Tensor"});
  ops.in_place(floor_divide, "floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)");
  ops.add(remainder, {
                         .schema = "remainder.Tensor(Tensor self, Tensor other) -> Tensor",
                         .kind = OpKind::pointwise,
                         .meta = numeric_meta,
                         .scalar = [](Expr self, Expr other) { return call(loop::Fn::remainder, self, other); },
                         .vjp = {{"self", [](Vjp& v) { return v.grad(); }},
                                 {"other", [](Vjp& v) { return rounded_quotient_gradient(v, "floor"); }}},
                     });
  ops.overload(remainder, {"remainder.Scalar(Tensor self, Scalar other) -> Tensor",
                           "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor"});
  ops.add(fmod, {
                    .schema = "fmod.Tensor(Tensor self, Tensor other) -> Tensor",
                    .kind = OpKind::pointwise,
                    .meta = numeric_meta,
                    .scalar = [](Expr self, Expr other) { return call(loop::Fn::fmod, self, other); },
                    .vjp = {{"self", [](Vjp& v) { return v.grad(); }},
                            {"other", [](Vjp& v) { return rounded_quotient_gradient(v, "trunc"); }}},
                });
  ops.overload(fmod, {"fmod.Scalar(Tensor self, Scalar other) -> Tensor"});
  ops.add(neg, {
                   .schema = "neg(Tensor self) -> Tensor",
                   .kind = OpKind::pointwise,
                   .meta = numeric_meta,
                   .scalar = [](Expr self) { return -self; },
                   .vjp = {{"self", [](Vjp& v) { return -v.grad(); }}},
                   .complex = [](Build& b) { return by_parts(b, "self"); },
               });
  ops.alias(neg, {"negative"});
  ops.add({
      .schema = "positive(Tensor(a) self) -> Tensor(a)",
      .kind = OpKind::composite,
      .traits = {.may_alias = true},
      .decompose = [](Build& b) -> Results {
        b.require(b["self"].dtype() != DType::boolean, "boolean tensors are not supported, got ", b["self"].meta());
        return one(b["self"]);
      },
  });
  ops.add(reciprocal, {
                          .schema = "reciprocal(Tensor self) -> Tensor",
                          .kind = OpKind::pointwise,
                          .scalar = [](Expr self) { return call(loop::Fn::reciprocal, self); },
                          .vjp = {{"self", [](Vjp& v) { return -v.grad() * v.out() * v.out(); }}},
                          .promote = Promote::int_to_float,
                          .complex = complex_of_one<complex::reciprocal>,
                      });
  ops.add(addcmul, {
                       .schema = "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
                       .kind = OpKind::pointwise,
                       .meta = numeric_meta,
                       .scalar = [](Expr self, Expr tensor1, Expr tensor2,
                                    Expr value) { return self + value * tensor1 * tensor2; },
                       .vjp = {{"self", [](Vjp& v) { return v.grad(); }},
                               {"tensor1, tensor2",
                                [](Vjp& v) -> Grads {
                                  Tensor g = mul(v.grad(), v.arg("value"));
                                  return {g * v["tensor2"], g * v["tensor1"]};
                                }}},
                       .promotes = "self, tensor1, tensor2",
                       .complex = [](Build& b) -> Results {
                         return one(joined(operand(b, "self") +
                                           operand(b, "value") * operand(b, "tensor1") * operand(b, "tensor2")));
                       },
                   });
  ops.add(addcdiv, {
                       .schema = "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
                       .kind = OpKind::pointwise,
                       .meta = [](MetaCall& m) -> Metas {
                         m.require(is_floating(m.meta("tensor1").dtype) || is_floating(m.meta("tensor2").dtype),
                                   "expected a floating point tensor to divide, got ", m.meta("tensor1"), " and ",
                                   m.meta("tensor2"), "; use addcmul or convert one of them");
                         return pointwise_meta(m);
                       },
                       .scalar = [](Expr self, Expr tensor1, Expr tensor2,
                                    Expr value) { return self + value * tensor1 / tensor2; },
                       .vjp = {{"self", [](Vjp& v) { return v.grad(); }},
                               {"tensor1, tensor2",
                                [](Vjp& v) -> Grads {
                                  Tensor slope = mul(v.grad(), v.arg("value")) / v["tensor2"];
                                  return {slope, -slope * (v["tensor1"] / v["tensor2"])};
                                }}},
                       .promotes = "self, tensor1, tensor2",
                       .complex = [](Build& b) -> Results {
                         return one(joined(operand(b, "self") +
                                           operand(b, "value") * operand(b, "tensor1") / operand(b, "tensor2")));
                       },
                   });
  ops.add({
      .schema = "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = same_dtypes,
      .scalar = interpolated,
      .vjp = {{"self", [](Vjp& v) { return v.grad() * (1 - v.number("weight")); }},
              {"end", [](Vjp& v) { return mul(v.grad(), v.arg("weight")); }}},
      .promotes = "self, end",
      .complex = complex_interpolation,
  });
  ops.add(lerp, {
                    .schema = "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
                    .kind = OpKind::pointwise,
                    .meta = same_dtypes,
                    .scalar = interpolated,
                    .vjp = {{"self", [](Vjp& v) { return v.grad() * (1.0 - v["weight"]); }},
                            {"end", [](Vjp& v) { return v.grad() * v["weight"]; }},
                            {"weight", [](Vjp& v) { return v.grad() * (v["end"] - v["self"]); }}},
                    .promote = Promote::first,
                    .complex = complex_interpolation,
                });
  ops.add({
      .schema = "gcd(Tensor self, Tensor other) -> Tensor",
      .meta = integral_meta,
      .host = {.name = "gcd", .per_element = true},
  });
  ops.add({
      .schema = "lcm(Tensor self, Tensor other) -> Tensor",
      .meta = integral_meta,
      .host = {.name = "lcm", .per_element = true},
  });
}

}  // namespace tenon

#include "tenon/ops/arithmetic.h"

#include <cmath>

#include "tenon/ops/create.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle add, sub, mul, div, neg, reciprocal, pow_scalar, pow_tensor, pow_base, sqrt, rsqrt, exp, log, abs, sign, where, eq, ne, lt, le, gt, ge, maximum,
    minimum, sin, cos, square, rsub, div_mode;

static Handle sub_scalar, mul_scalar, div_scalar, div_scalar_mode, eq_scalar, ne_scalar, lt_scalar, le_scalar, gt_scalar, ge_scalar;

Tensor operator-(double a, const Tensor& b) { return rsub(b, a); }
Tensor operator/(double a, const Tensor& b) { return mul(reciprocal(b), a); }

namespace {

// Numbers that are gradients of scalar arguments do not exist: only tensors get one.
Tensor scaled(const Tensor& g, const ArgsView& v, size_t alpha) { return v.number(alpha) == 1 ? g : Tensor(mul(g, v.arg(alpha))); }

bool boolean(loop::Expr x) { return x.type() == loop::Compute::boolean; }

// Among booleans a sum is "or" and a product "and".
loop::Expr product(const Scalars& x) { return boolean(x[0]) ? x[0] && x[1] : x[0] * x[1]; }
loop::Expr scaled_sum(const Scalars& x) {
  if (boolean(x[0])) return x[0] || (x[1] && x[2]);
  return x.number(2) == 1 ? x[0] + x[1] : x[0] + x[1] * x[2];
}

loop::Expr rounded_division(const Scalars& x) {
  if (!x.given(2)) {   // true division: integers become floats
    auto real = [](loop::Expr e) { return e.type() == loop::Compute::f64 ? e : cast(e, loop::Compute::f32); };
    return real(x[0]) / real(x[1]);
  }
  const std::string& mode = x.string(2);
  if (mode == "floor") return call(loop::Fn::floor_div, x[0], x[1]);
  x.require(mode == "trunc", "rounding_mode: expected None, 'trunc' or 'floor', got ", quoted(mode));
  if (x[0].type() == loop::Compute::i64) return call(loop::Fn::div, x[0], x[1]);   // integer division cuts off
  return call(loop::Fn::trunc, round_to(x[0] / x[1], common_dtype(x, "self, other")));   // as PyTorch: a narrow quotient is rounded first
}

Grads product_rule(Vjp& v) {
  Tensor g = v.grad(0);
  return {v.needs(0) ? Grad(mul(g, v.arg(1))) : Grad(), v.needs(1) ? Grad(g * v[0]) : Grad()};
}

Grads quotient_rule(Vjp& v) {
  Tensor g = v.grad(0);
  return {v.needs(0) ? Grad(div(g, v.arg(1))) : Grad(), v.needs(1) ? Grad(-g * (v.out(0) / v[1])) : Grad()};
}

Metas rounded_division_meta(MetaCall& m) {
  CallArgs plain(m.args.begin(), m.args.begin() + 2);
  if (!m.given(2)) return *infer(div.op(), plain);
  return numeric_meta(m);
}

Grads rounded_quotient_rule(Vjp& v) {
  if (!v.given(2)) return quotient_rule(v);
  return {zeros_like(v.grad(0)), v.needs(1) ? Grad(zeros_like(v.grad(0))) : Grad()};
}


loop::Expr choice(const Scalars& x) { return select(x[0], x[1], x[2]); }

Grads choice_rule(Vjp& v) {
  return {none, v.needs(1) ? Grad(where(v[0], v.grad(0), 0.0)) : Grad(), v.needs(2) ? Grad(where(v[0], 0.0, v.grad(0))) : Grad()};
}

// x^p for a number p. d = p * x^(p-1), and 0 where p is 0.
Grads power_rule(Vjp& v) {
  double p = v.number(1);
  if (p == 0) return {zeros_like(v.grad(0))};
  return {v.grad(0) * (Tensor(pow_scalar(v[0], p - 1)) * p)};
}

}  // namespace

Grads tied_gradients(const Tensor& g, const Tensor& a, const Tensor& b, bool larger) {
  Tensor half = where(eq(a, b), g / 2.0, g);
  Tensor first_loses = larger ? lt(a, b) : gt(a, b), second_loses = larger ? gt(a, b) : lt(a, b);
  return {where(first_loses, 0.0, half), where(second_loses, 0.0, half)};
}

void register_arithmetic(Registry& ops) {
  ops.add(add, {
      .schema = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
      .kind = OpKind::pointwise,
      .traits = {.takes_numbers = true},
      .scalar = scaled_sum,
      .vjp = {{"self", [](Vjp& v) { return v.grad(); }},
              {"other", [](Vjp& v) { return scaled(v.grad(), v, 2); }}},
      .promotes = "self, other",
  });
  ops.add({
      .schema = "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = scaled_sum,
      .vjp = {{"self", [](Vjp& v) { return v.grad(); }}},
      .promotes = "self, other",
  });
  ops.add(sub, {
      .schema = "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
      .kind = OpKind::pointwise,
      .traits = {.takes_numbers = true},
      .meta = numeric_meta,
      .scalar = [](const Scalars& x) { return x.number("alpha") == 1 ? x["self"] - x["other"] : x["self"] - x["other"] * x["alpha"]; },
      .vjp = {{"self", [](Vjp& v) { return v.grad(); }},
              {"other", [](Vjp& v) { return -scaled(v.grad(), v, 2); }}},
      .promotes = "self, other",
  });
  ops.add(sub_scalar, {
      .schema = "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = [](const Scalars& x) { return x.number("alpha") == 1 ? x["self"] - x["other"] : x["self"] - x["other"] * x["alpha"]; },
      .vjp = {{"self", [](Vjp& v) { return v.grad(); }}},
      .promotes = "self, other",
  });
  ops.add(rsub, {
      .schema = "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = [](const Scalars& x) { return x.number("alpha") == 1 ? x["other"] - x["self"] : x["other"] - x["self"] * x["alpha"]; },
      .vjp = {{"self", [](Vjp& v) { return -scaled(v.grad(), v, 2); }}},
      .promotes = "self, other",
  });
  ops.add(mul, {
      .schema = "mul.Tensor(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .traits = {.takes_numbers = true},
      .scalar = product,
      .vjp = {{"self, other", product_rule}},
  });
  ops.add(mul_scalar, {
      .schema = "mul.Scalar(Tensor self, Scalar other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = product,
      .vjp = {{"self, other", product_rule}},
  });
  ops.add(div, {
      .schema = "div.Tensor(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .traits = {.takes_numbers = true},
      .scalar = [](loop::Expr self, loop::Expr other) { return self / other; },
      .vjp = {{"self, other", quotient_rule}},
      .promote = Promote::int_to_float,
  });
  ops.add(div_scalar, {
      .schema = "div.Scalar(Tensor self, Scalar other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](loop::Expr self, loop::Expr other) { return self / other; },
      .vjp = {{"self, other", quotient_rule}},
      .promote = Promote::int_to_float,
  });
  ops.add(div_mode, {
      .schema = "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
      .kind = OpKind::pointwise,
      .traits = {.takes_numbers = true},
      .meta = rounded_division_meta,
      .scalar = rounded_division,
      .vjp = {{"self, other, rounding_mode", rounded_quotient_rule}},
      .promotes = "self, other",
  });
  ops.add(div_scalar_mode, {
      .schema = "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = rounded_division_meta,
      .scalar = rounded_division,
      .vjp = {{"self, other, rounding_mode", rounded_quotient_rule}},
      .promotes = "self, other",
  });
  ops.add({
      .schema = "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = [](const Scalars& x) { return x.number("alpha") == 1 ? x["other"] - x["self"] : x["other"] - x["self"] * x["alpha"]; },
      .vjp = {{"self", [](Vjp& v) { return -scaled(v.grad(), v, 2); }},
              {"other", [](Vjp& v) { return v.grad(); }}},
      .promotes = "self, other",
  });
  ops.add(neg, {
      .schema = "neg(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = [](loop::Expr self) { return -self; },
      .vjp = {{"self", [](Vjp& v) { return -v.grad(); }}},
  });
  ops.add(reciprocal, {
      .schema = "reciprocal(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](loop::Expr self) { return call(loop::Fn::reciprocal, self); },
      .vjp = {{"self", [](Vjp& v) { return -v.grad() * v.out() * v.out(); }}},
      .promote = Promote::int_to_float,
  });
  ops.add(abs, {
      .schema = "abs(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = [](loop::Expr self) { return loop::abs(self); },
      .vjp = {{"self", [](Vjp& v) { return v.grad() * Tensor(sign(v["self"])); }}},
  });
  ops.add(sign, {
      .schema = "sign(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](loop::Expr self) { return boolean(self) ? self : call(loop::Fn::sign, self); },
      .vjp = {{"self", [](Vjp& v) { return zeros_like(v.grad()); }}},
  });
  ops.add(sqrt, {
      .schema = "sqrt(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](loop::Expr self) { return loop::sqrt(self); },
      .vjp = {{"self", [](Vjp& v) { return v.grad() / (v.out() * 2.0); }}},
      .promote = Promote::int_to_float,
  });
  ops.add(rsqrt, {
      .schema = "rsqrt(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](loop::Expr self) { return loop::rsqrt(self); },
      .vjp = {{"self", [](Vjp& v) -> Grads { Tensor y = v.out(0); return {v.grad(0) * (y * y * y) * -0.5}; }}},
      .promote = Promote::int_to_float,
  });
  ops.add(exp, {
      .schema = "exp(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](loop::Expr self) { return loop::exp(self); },
      .vjp = {{"self", [](Vjp& v) { return v.grad() * v.out(); }}},
      .promote = Promote::int_to_float,
  });
  ops.add(log, {
      .schema = "log(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](loop::Expr self) { return loop::log(self); },
      .vjp = {{"self", [](Vjp& v) { return v.grad() / v["self"]; }}},
      .promote = Promote::int_to_float,
  });
  ops.add(sin, {
      .schema = "sin(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](loop::Expr self) { return loop::sin(self); },
      .vjp = {{"self", [](Vjp& v) { return v.grad() * Tensor(cos(v["self"])); }}},
      .promote = Promote::int_to_float,
  });
  ops.add(cos, {
      .schema = "cos(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](loop::Expr self) { return loop::cos(self); },
      .vjp = {{"self", [](Vjp& v) { return v.grad() * -Tensor(sin(v["self"])); }}},
      .promote = Promote::int_to_float,
  });
  ops.add(square, {
      .schema = "square(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return pow_scalar(b["self"], 2); },
  });
  ops.add(pow_scalar, {
      .schema = "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](const Scalars& x) -> loop::Expr {
        double p = x.number("exponent");
        if (p == 2) return x["self"] * x["self"];
        if (p == 3) return x["self"] * x["self"] * x["self"];
        if (p == 0.5 && x["self"].type() != loop::Compute::i64) return loop::sqrt(x["self"]);
        if (p == -0.5) return loop::rsqrt(x["self"]);
        if (p == -1 && x["self"].type() != loop::Compute::i64) return call(loop::Fn::reciprocal, x["self"]);
        return pow(x["self"], x["exponent"]);
      },
      .vjp = {{"self, exponent", power_rule}},
  });
  ops.add(pow_tensor, {
      .schema = "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](loop::Expr self, loop::Expr exponent) { return pow(self, exponent); },
      .vjp = {{"self, exponent", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), x = v["self"], p = v["exponent"], y = v.out(0);
        Tensor base = v.needs("self") ? Tensor(where(eq(p, 0.0), 0.0, g * (p * Tensor(pow_tensor(x, p - 1.0))))) : none;
        Tensor exponent = v.needs("exponent") ? Tensor(where(logical_and(eq(x, 0.0), ge(p, 0.0)), 0.0, g * (y * Tensor(log(x))))) : none;
        return {base, exponent};
      }}},
  });
  ops.in_place(pow_scalar, "pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)");
  ops.in_place(pow_tensor, "pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)");
  ops.add(pow_base, {
      .schema = "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](loop::Expr self, loop::Expr exponent) { return pow(self, exponent); },
      .vjp = {{"self, exponent", [](Vjp& v) -> Grads {
        double base = v.number("self");
        Tensor whole = v.grad(0) * (v.out(0) * std::log(base));
        return {none, base == 0 ? Tensor(where(ge(v["exponent"], 0.0), 0.0, whole)) : whole};
      }}},
  });
  ops.add(maximum, {
      .schema = "maximum(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](loop::Expr self, loop::Expr other) { return boolean(self) ? self || other : max(self, other); },
      .vjp = {{"self, other", [](Vjp& v) { return tied_gradients(v.grad(), v["self"], v["other"], true); }}},
  });
  ops.add(minimum, {
      .schema = "minimum(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](loop::Expr self, loop::Expr other) { return boolean(self) ? self && other : min(self, other); },
      .vjp = {{"self, other", [](Vjp& v) { return tied_gradients(v.grad(), v["self"], v["other"], false); }}},
  });
  ops.alias(maximum, {"max.other"});
  ops.alias(minimum, {"min.other"});

  ops.add(where, {
      .schema = "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = choice,
      .vjp = {{"condition, self, other", choice_rule}},
      .promotes = "self, other",
  });
  for (const char* schema : {"where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
                             "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
                             "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor"})
    ops.add({
        .schema = schema,
        .kind = OpKind::pointwise,
        .scalar = choice,
        .vjp = {{"condition, self, other", choice_rule}},
        .promotes = "self, other",
    });

#define TENON_COMPARISON(handle, name, symbol)                                                          \
  ops.add(handle, {.schema = name ".Tensor(Tensor self, Tensor other) -> Tensor",                       \
                   .kind = OpKind::pointwise,                                                             \
                   .scalar = [](const Scalars& x) { return x[0] symbol x[1]; },                         \
                   .promote = Promote::to_boolean});                                                    \
  ops.add(handle##_scalar, {.schema = name ".Scalar(Tensor self, Scalar other) -> Tensor",              \
           .kind = OpKind::pointwise,                                                                     \
           .scalar = [](const Scalars& x) { return x[0] symbol x[1]; },                                 \
           .promote = Promote::to_boolean})
  TENON_COMPARISON(eq, "eq", ==);
  TENON_COMPARISON(ne, "ne", !=);
  TENON_COMPARISON(lt, "lt", <);
  TENON_COMPARISON(le, "le", <=);
  TENON_COMPARISON(gt, "gt", >);
  TENON_COMPARISON(ge, "ge", >=);
#undef TENON_COMPARISON
  ops.alias(sub, {"subtract.Tensor"});
  ops.alias(sub_scalar, {"subtract.Scalar"});
  ops.alias(mul, {"multiply.Tensor"});
  ops.alias(mul_scalar, {"multiply.Scalar"});
  ops.alias(div, {"divide.Tensor", "true_divide.Tensor"});
  ops.alias(div_scalar, {"divide.Scalar", "true_divide.Scalar"});
  ops.alias(div_mode, {"divide.Tensor_mode"});
  ops.alias(div_scalar_mode, {"divide.Scalar_mode"});
  ops.alias(neg, {"negative"});
  ops.alias(abs, {"absolute"});
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
}

}  // namespace tenon

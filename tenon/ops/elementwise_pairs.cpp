// Functions of two and three elements.
#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/convert.h"
#include "tenon/ops/create.h"
#include "tenon/ops/elementwise.h"
#include "tenon/rules/infer.h"
#include "tenon/ops/logic.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle clamp, clamp_min, clamp_max, addcmul, addcdiv, lerp, fmin, fmax, remainder, fmod, floor_divide, xlogy, logaddexp;

static Handle atan2, clamp_tensor, xlogy_scalar, xlogy_of_number, float_power, float_power_scalar, ldexp;

namespace {

using loop::Expr;

Expr quotient_floor(const Scalars& x) { return call(loop::Fn::floor_div, x[0], x[1]); }
Expr quotient_rest(const Scalars& x) { return call(loop::Fn::remainder, x[0], x[1]); }
Expr quotient_rest_trunc(const Scalars& x) { return call(loop::Fn::fmod, x[0], x[1]); }

// x - y * round(x / y): the slope in y is minus the rounded quotient.
Grads rest_rule(Vjp& v, const char* rounding) {
  Tensor g = v.grad(0);
  return {v.needs(0) ? Grad(g) : Grad(), v.needs(1) ? Grad(-g * Tensor(div_mode(v[0], v[1], kw("rounding_mode", std::string(rounding))))) : Grad()};
}
Grads floor_rest(Vjp& v) { return rest_rule(v, "floor"); }
Grads trunc_rest(Vjp& v) { return rest_rule(v, "trunc"); }

Metas clamp_meta(MetaCall& m) {
  m.require(m.given(1) || m.given(2), "expected a min or a max, got neither");
  return pointwise_meta(m);
}

bool boolean(Expr x) { return x.type() == loop::Compute::boolean; }
Expr larger_of(Expr a, Expr b) { return boolean(a) ? a || b : max(a, b); }
Expr smaller_of(Expr a, Expr b) { return boolean(a) ? a && b : min(a, b); }

Expr clamped(const Scalars& x) {
  Expr y = x[0];
  if (x.given(1)) y = larger_of(y, x[1]);
  if (x.given(2)) y = smaller_of(y, x[2]);
  return y;
}

// Between two tensors of bounds: an input on a bound shares its gradient with it, unless the bounds leave no room.
Grads between_rule(Vjp& v) {
  Tensor g = v.grad(0), x = v[0], low = v[1], high = v[2], half = g / 2.0;
  Tensor room = lt(low, high), ordered = le(low, high);
  Tensor on_low = logical_and(eq(x, low), room), on_high = logical_and(eq(x, high), room);
  Grads out(3);
  if (v.needs(0)) out[0] = where(logical_or(lt(x, low), gt(x, high)), 0.0, where(logical_or(on_low, on_high), half, g));
  if (v.needs(1)) out[1] = where(on_low, half, where(logical_and(lt(x, low), ordered), g, 0.0));
  if (v.needs(2)) out[2] = where(on_high, half, where(logical_or(logical_and(gt(x, high), ordered), lt(high, low)), g, 0.0));
  return out;
}

// Where one of two numbers is NaN the other is taken; equal ones share.
Grads tie_without_nan(Vjp& v, bool larger) {
  Tensor g = v.grad(0), a = v[0], b = v[1], half = g / 2.0;
  Tensor first = logical_or(larger ? gt(a, b) : lt(a, b), isnan(b)), tied = eq(a, b);
  return {v.needs(0) ? Grad(where(tied, half, where(first, g, 0.0))) : Grad(), v.needs(1) ? Grad(where(tied, half, where(first, 0.0, g))) : Grad()};
}

Expr x_log_y(const Scalars& x) {
  return select(loop::is_nan(x[1]), x[1], select(x[0] == 0.0, 0.0, x[0] * loop::log(x[1])));
}
Expr x_log1p_y(const Scalars& x) {
  return select(loop::is_nan(x[1]), x[1], select(x[0] == 0.0, 0.0, x[0] * loop::log1p(x[1])));
}
Tensor xlogy_first(const Tensor& g, const Tensor& x, const Tensor& y) {
  return where(logical_and(eq(x, 0.0), le(y, 0.0)), 0.0, Tensor(xlogy(g, y)));
}

Metas same_dtypes(MetaCall& m) {
  DType dtype = m.meta(0).dtype;
  for (size_t i = 1; i < m.args.size(); ++i)
    if (m.is_tensor(i))
      m.require(m.meta(i).dtype == dtype || m.meta(i).rank() == 0, "expected tensors of one dtype, got ", m.meta(0), " and ", m.meta(i));
  return pointwise_meta(m);
}

// From the nearer end, so that both ends are met exactly.
Expr interpolated(const Scalars& x) {
  Expr step = x[1] - x[0];
  return select(loop::abs(x[2]) < 0.5, x[0] + x[2] * step, x[1] - step * (1.0 - x[2]));
}

Tensor copysign_slope(const Tensor& g, const Tensor& x, const Tensor& y) { return where(eq(x, 0.0), 0.0, g * (y / x)); }

Expr signed_as(const Scalars& x) { return call(loop::Fn::copysign, x[0], x[1]); }

// The next f16 or bf16 after x, both held in f32: a step of between half a place and one, rounded.
Expr next_narrow(Expr x, Expr toward, DType dtype) {
  bool half = dtype == DType::f16;
  double smallest = half ? 0x1p-24 : 0x1p-133, largest = half ? 65504 : 0x1.FEp127;
  Expr step = max(loop::abs(x) * (half ? 0x1.01p-11 : 0x1.01p-8), 0.75 * smallest);
  Expr next = round_to(select(toward > x, x + step, x - step), dtype);
  next = select(call(loop::Fn::is_inf, x), call(loop::Fn::copysign, loop::constant(*x.arena, largest, x.type()), x), next);
  return select(loop::is_nan(x) || loop::is_nan(toward), x + toward, select(x == toward, toward, next));
}

Results power_in_double(const CallArg& base, const CallArg& exponent) {
  auto wide = [](const CallArg& a) -> CallArg {
    if (auto* t = a.get<Tensor>()) return to(*t, DType::f64);
    return a;
  };
  if (!base.is<Tensor>()) return pow_base(wide(base), wide(exponent));
  return exponent.is<Tensor>() ? pow_tensor(wide(base), wide(exponent)) : pow_scalar(wide(base), wide(exponent));
}

}  // namespace

void register_elementwise_pairs(Registry& ops) {
  ops.add(atan2, {
      .schema = "atan2(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self, Expr other) { return call(loop::Fn::atan2, self, other); },
      .vjp = {{"self, other", [](Vjp& v) -> Grads {
        Tensor a = v["self"], b = v["other"], square = a * a + b * b;
        Tensor slope = where(eq(square, 0.0), 0.0, v.grad(0) / square);
        return {v.needs("self") ? Grad(slope * b) : Grad(), v.needs("other") ? Grad(slope * -a) : Grad()};
      }}},
      .promote = Promote::int_to_float,
  });
  ops.alias(atan2, {"arctan2"});

  ops.add(floor_divide, {
      .schema = "floor_divide(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = quotient_floor,
  });
  ops.in_place(floor_divide, "floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)");
  ops.add({
      .schema = "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = quotient_floor,
  });
  ops.add(remainder, {
      .schema = "remainder.Tensor(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = quotient_rest,
      .vjp = {{"self, other", floor_rest}},
  });
  ops.add({
      .schema = "remainder.Scalar(Tensor self, Scalar other) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = quotient_rest,
      .vjp = {{"self", [](Vjp& v) { return v.grad(); }}},
  });
  ops.add({
      .schema = "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = quotient_rest,
      .vjp = {{"self, other", floor_rest}},
  });
  ops.add(fmod, {
      .schema = "fmod.Tensor(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = quotient_rest_trunc,
      .vjp = {{"self, other", trunc_rest}},
  });
  ops.add({
      .schema = "fmod.Scalar(Tensor self, Scalar other) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = quotient_rest_trunc,
      .vjp = {{"self", [](Vjp& v) { return v.grad(); }}},
  });

  ops.add(clamp, {
      .schema = "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = clamp_meta,
      .scalar = clamped,
      .vjp = {{"self, min, max", [](Vjp& v) -> Grads {   // the bounds themselves are outside
        Tensor x = v["self"], inside;
        if (v.given("min")) inside = gt(x, v.arg("min"));
        if (v.given("max")) inside = inside ? Tensor(logical_and(inside, lt(x, v.arg("max")))) : Tensor(lt(x, v.arg("max")));
        return {kept(v.grad(0), inside)};
      }}},
  });
  ops.add(clamp_tensor, {
      .schema = "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = clamp_meta,
      .scalar = clamped,
      .vjp = {{"self, min, max", [](Vjp& v) -> Grads {
        if (v.given("min") && v.given("max")) return between_rule(v);
        bool low = v.given("min");
        Grads two = tied_gradients(v.grad(), v["self"], v[low ? "min" : "max"], low), out(3);
        out[0] = two[0];
        out[low ? 1 : 2] = two[1];
        return out;
      }}},
  });
  ops.alias(clamp, {"clip"});
  ops.alias(clamp_tensor, {"clip.Tensor"});
  ops.add(clamp_min, {
      .schema = "clamp_min(Tensor self, Scalar min) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self, Expr min) { return larger_of(self, min); },
      .vjp = {{"self", [](Vjp& v) { return kept(v.grad(), gt(v["self"], v.arg("min"))); }}},
  });
  ops.add(clamp_max, {
      .schema = "clamp_max(Tensor self, Scalar max) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self, Expr max) { return smaller_of(self, max); },
      .vjp = {{"self", [](Vjp& v) { return kept(v.grad(), lt(v["self"], v.arg("max"))); }}},
  });
  ops.add({
      .schema = "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self, Expr min) { return larger_of(self, min); },
      .vjp = {{"self, min", [](Vjp& v) { return tied_gradients(v.grad(), v["self"], v["min"], true); }}},
  });
  ops.add({
      .schema = "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self, Expr max) { return smaller_of(self, max); },
      .vjp = {{"self, max", [](Vjp& v) { return tied_gradients(v.grad(), v["self"], v["max"], false); }}},
  });
  ops.add(fmin, {
      .schema = "fmin(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self, Expr other) { return boolean(self) ? self && other : call(loop::Fn::fmin, self, other); },
      .vjp = {{"self, other", [](Vjp& v) { return tie_without_nan(v, false); }}},
  });
  ops.add(fmax, {
      .schema = "fmax(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self, Expr other) { return boolean(self) ? self || other : call(loop::Fn::fmax, self, other); },
      .vjp = {{"self, other", [](Vjp& v) { return tie_without_nan(v, true); }}},
  });

  ops.add(addcmul, {
      .schema = "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = [](Expr self, Expr tensor1, Expr tensor2, Expr value) { return self + value * tensor1 * tensor2; },
      .vjp = {{"self, tensor1, tensor2, value", [](Vjp& v) -> Grads {
        Tensor g = mul(v.grad(0), v.arg("value"));
        return {v.grad(0), v.needs("tensor1") ? Grad(g * v["tensor2"]) : Grad(), v.needs("tensor2") ? Grad(g * v["tensor1"]) : Grad()};
      }}},
      .promotes = "self, tensor1, tensor2",
  });
  ops.add(addcdiv, {
      .schema = "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = [](MetaCall& m) -> Metas {
        m.require(is_floating(m.meta("tensor1").dtype) || is_floating(m.meta("tensor2").dtype), "expected a floating point tensor to divide, got ", m.meta("tensor1"),
                  " and ", m.meta("tensor2"), "; use addcmul or convert one of them");
        return pointwise_meta(m);
      },
      .scalar = [](Expr self, Expr tensor1, Expr tensor2, Expr value) { return self + value * tensor1 / tensor2; },
      .vjp = {{"self, tensor1, tensor2, value", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), slope = mul(g, v.arg("value")) / v["tensor2"];
        return {g, slope, v.needs("tensor2") ? Grad(-slope * (v["tensor1"] / v["tensor2"])) : Grad()};
      }}},
      .promotes = "self, tensor1, tensor2",
  });
  ops.add({
      .schema = "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = same_dtypes,
      .scalar = interpolated,
      .vjp = {{"self", [](Vjp& v) { return v.grad() * (1 - v.number("weight")); }},
              {"end", [](Vjp& v) { return mul(v.grad(), v.arg("weight")); }}},
      .promotes = "self, end",
  });
  ops.add(lerp, {
      .schema = "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = same_dtypes,
      .scalar = interpolated,
      .vjp = {{"self, end, weight", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), w = v["weight"];
        return {v.needs("self") ? Grad(g * (1.0 - w)) : Grad(), v.needs("end") ? Grad(g * w) : Grad(), v.needs("weight") ? Grad(g * (v["end"] - v["self"])) : Grad()};
      }}},
      .promote = Promote::first,
  });
  ops.add({
      .schema = "hypot(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self, Expr other) { return call(loop::Fn::hypot, self, other); },
      .vjp = {{"self, other", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), y = v.out(0);
        return {v.needs("self") ? Grad(g * (v["self"] / y)) : Grad(), v.needs("other") ? Grad(g * (v["other"] / y)) : Grad()};
      }}},
  });
  ops.add({
      .schema = "copysign.Tensor(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = signed_as,
      .vjp = {{"self, other", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0);
        return {v.needs("self") ? Grad(copysign_slope(g, v["self"], v.out(0))) : Grad(), v.needs("other") ? Grad(zeros_like(g)) : Grad()};
      }}},
      .promote = Promote::int_to_float,
  });
  ops.add({
      .schema = "copysign.Scalar(Tensor self, Scalar other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = signed_as,
      .vjp = {{"self", [](Vjp& v) { return copysign_slope(v.grad(), v["self"], v.out()); }}},
      .promote = Promote::int_to_float,
  });
  ops.add({
      .schema = "nextafter(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) -> Expr {
        DType dtype = common_dtype(x);
        if (dtype == DType::f32 || dtype == DType::f64) return call(loop::Fn::nextafter, x["self"], x["other"]);
        return next_narrow(x["self"], x["other"], dtype);
      },
      .vjp = {{"self, other", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0);
        return {v.needs("self") ? Grad(where(eq(v["self"], v["other"]), 0.0, g)) : Grad(), v.needs("other") ? Grad(zeros_like(g)) : Grad()};
      }}},
  });
  ops.add({
      .schema = "heaviside(Tensor self, Tensor values) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.meta("self").dtype == m.meta("values").dtype, "expected tensors of one dtype, got ", m.meta("self"), " and ", m.meta("values"));
        return pointwise_meta(m);
      },
      .scalar = [](Expr self, Expr values) -> Expr {
        if (boolean(self)) return self || values;
        return select(self == 0, values, cast(self > 0, self.type()));
      },
  });
  ops.add(xlogy, {
      .schema = "xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = x_log_y,
      .vjp = {{"self, other", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0);
        return {v.needs("self") ? Grad(xlogy_first(g, v["self"], v["other"])) : Grad(), v.needs("other") ? Grad(g * v["self"] / v["other"]) : Grad()};
      }}},
      .promote = Promote::int_to_float,
  });
  ops.add(xlogy_scalar, {
      .schema = "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = x_log_y,
      .vjp = {{"self, other", [](Vjp& v) -> Grads {
        double y = v.number("other");
        Tensor whole = v.grad(0) * std::log(y);
        return {y > 0 ? whole : Tensor(where(eq(v["self"], 0.0), 0.0, whole))};
      }}},
      .promote = Promote::int_to_float,
  });
  ops.add(xlogy_of_number, {
      .schema = "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = x_log_y,
      .vjp = {{"other", [](Vjp& v) { return mul(v.grad(), v.arg("self")) / v["other"]; }}},
      .promote = Promote::int_to_float,
  });
  ops.alias(xlogy, {"special_xlogy"});
  ops.alias(xlogy_scalar, {"special_xlogy.other_scalar"});
  ops.alias(xlogy_of_number, {"special_xlogy.self_scalar"});
  ops.add({
      .schema = "special_xlog1py(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = x_log1p_y,
      .vjp = {{"self, other", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), x = v["self"], y = v["other"];
        Tensor first = v.needs("self") ? Tensor(where(logical_and(eq(x, 0.0), le(y, -1.0)), 0.0, g * Tensor(log1p(y)))) : none;
        return {first, v.needs("other") ? Grad(g * x / (y + 1.0)) : Grad()};
      }}},
      .promote = Promote::int_to_float,
  });
  ops.add(logaddexp, {
      .schema = "logaddexp(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self, Expr other) {
        Expr sum = max(self, other) + loop::log1p(loop::exp(-loop::abs(self - other)));
        return select(call(loop::Fn::is_inf, self) && self == other, self, sum);
      },
      .vjp = {{"self, other", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), a = v["self"], b = v["other"];
        return {v.needs("self") ? Grad(g / (Tensor(exp(b - a)) + 1.0)) : Grad(), v.needs("other") ? Grad(g / (Tensor(exp(a - b)) + 1.0)) : Grad()};
      }}},
  });
  ops.add({
      .schema = "logaddexp2(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self, Expr other) {
        Expr sum = max(self, other) + loop::log1p(call(loop::Fn::exp2, -loop::abs(self - other))) * M_LOG2E;
        return select(call(loop::Fn::is_inf, self) && self == other, self, sum);
      },
      .vjp = {{"self, other", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), a = v["self"], b = v["other"];
        return {v.needs("self") ? Grad(g / (Tensor(pow_base(2, b - a)) + 1.0)) : Grad(), v.needs("other") ? Grad(g / (Tensor(pow_base(2, a - b)) + 1.0)) : Grad()};
      }}},
  });

  ops.add(float_power, {
      .schema = "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return power_in_double(b.arg("self"), b.arg("exponent")); },
  });
  ops.add(float_power_scalar, {
      .schema = "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return power_in_double(b.arg("self"), b.arg("exponent")); },
  });
  ops.add({
      .schema = "float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return power_in_double(b.arg("self"), b.arg("exponent")); },
  });
  ops.in_place(float_power, "float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)");
  ops.in_place(float_power_scalar, "float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)");
  ops.add(ldexp, {
      .schema = "ldexp.Tensor(Tensor self, Tensor other) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return mul(b["self"], pow_base(2.0, b["other"])); },
  });
  ops.in_place(ldexp, "ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)");
}

}  // namespace tenon

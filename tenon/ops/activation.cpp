#include "tenon/ops/activation.h"

#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle relu, sigmoid, tanh, gelu, silu, softplus, hardtanh, leaky_relu, elu, threshold_backward, sigmoid_backward, tanh_backward,
    gelu_backward, silu_backward, leaky_relu_backward;

static Handle mish_backward, softplus_backward, hardtanh_backward, hardswish_backward, hardsigmoid_backward, elu_backward,
    hardshrink_backward, softshrink_backward, logit, logit_backward;

namespace {

using loop::Expr;

constexpr double kappa = 0.044715;                             // of the tanh form of gelu
constexpr double beta = M_SQRT2 * M_2_SQRTPI * 0.5;            // sqrt(2 / pi)
constexpr double density = M_2_SQRTPI * M_SQRT1_2 * 0.5;       // 1 / sqrt(2 * pi)

bool by_tanh(const ArgsView& call, size_t approximate) {
  const std::string& how = call.string(approximate);
  call.require(how == "none" || how == "tanh", "approximate: expected 'none' or 'tanh', got ", quoted(how));
  return how == "tanh";
}

Expr clamped(Expr x, Expr low, Expr high) { return min(max(x, low), high); }

// The bounds and values of ops that keep self's dtype are numbers of that dtype: 2.7 is 2 beside integers.
Expr bound(const Scalars& x, size_t arg, size_t self = 0) { return cast(x[arg], x[self].type()); }

// The second derivative of gelu.
Tensor gelu_curve(const Tensor& x, bool tanh_form) {
  Tensor square = x * x;
  if (!tanh_form) return Tensor(exp(square * -0.5)) * density * (2.0 - square);
  Tensor t = tanh((x + square * x * kappa) * beta), flat = 1.0 - t * t, slope = (square * (3 * kappa) + 1.0) * beta;
  return flat * slope + x * 0.5 * (flat * x * (6 * beta * kappa) - t * flat * slope * slope * 2.0);
}

bool within_unit(const ArgsView& call, size_t eps, double& low, double& high) {
  if (!call.given(eps)) return false;
  low = call.number(eps);
  high = 1 - low;
  return true;
}

}  // namespace

void register_activation(Registry& ops) {
  ops.add(relu, {
      .schema = "relu(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = [](Expr self) { return max(self, 0); },
      .vjp = {{"self", [](Vjp& v) { return threshold_backward(v.grad(), v.out(), 0); }}},
  });
  ops.add({
      .schema = "relu6(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return hardtanh(b["self"], 0, 6); },
  });
  ops.add({
      .schema = "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](const Scalars& x) { return select(x["self"] <= bound(x, 1), bound(x, 2), x["self"]); },
      .vjp = {{"self", [](Vjp& v) { return threshold_backward(v.grad(), v["self"], v.arg("threshold")); }}},
      .promotes = "self",
  });
  ops.add(threshold_backward, {
      .schema = "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](const Scalars& x) { return select(x["self"] <= bound(x, 2, 1), 0, x["grad_output"]); },
      .vjp = {{"grad_output", [](Vjp& v) { return threshold_backward(v.grad(), v["self"], v.arg("threshold")); }}},
      .promotes = "grad_output, self",
  });

  ops.add(sigmoid, {
      .schema = "sigmoid(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) { return loop::sigmoid(self); },
      .vjp = {{"self", [](Vjp& v) { return sigmoid_backward(v.grad(), v.out()); }}},
      .promote = Promote::int_to_float,
  });
  ops.alias(sigmoid, {"special_expit"});
  ops.add(sigmoid_backward, {
      .schema = "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr grad, Expr output) { return grad * (1.0 - output) * output; },
      .vjp = {{"grad_output, output", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), y = v["output"];
        return {v.needs("grad_output") ? Grad(sigmoid_backward(g, y)) : Grad(), v.needs("output") ? Grad(g * v["grad_output"] * (1.0 - y * 2.0)) : Grad()};
      }}},
  });
  ops.add(tanh, {
      .schema = "tanh(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr self) { return loop::tanh(self); },
      .vjp = {{"self", [](Vjp& v) { return tanh_backward(v.grad(), v.out()); }}},
      .promote = Promote::int_to_float,
  });
  ops.add(tanh_backward, {
      .schema = "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](Expr grad, Expr output) { return grad * (1.0 - output * output); },
      .vjp = {{"grad_output, output", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), y = v["output"];
        return {v.needs("grad_output") ? Grad(tanh_backward(g, y)) : Grad(), v.needs("output") ? Grad(g * v["grad_output"] * y * -2.0) : Grad()};
      }}},
  });

  ops.add(gelu, {
      .schema = "gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& s) -> Expr {
        Expr x = s["self"];
        if (by_tanh(s, 1)) return 0.5 * x * (1.0 + loop::tanh(beta * (x + kappa * (x * x * x))));
        return x * 0.5 * (1.0 + loop::erf(x * M_SQRT1_2));
      },
      .vjp = {{"self", [](Vjp& v) { return gelu_backward(v.grad(), v["self"], kw("approximate", v.arg("approximate"))); }}},
  });
  ops.add(gelu_backward, {
      .schema = "gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& s) -> Expr {
        Expr g = s["grad_output"], x = s["self"];
        if (by_tanh(s, 2)) {
          Expr t = loop::tanh(beta * (x + kappa * (x * x * x)));
          Expr slope = beta * (1.0 + 3.0 * kappa * (x * x));
          return g * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope);
        }
        Expr cdf = 0.5 * (1.0 + loop::erf(x * M_SQRT1_2));
        return g * (cdf + x * (density * loop::exp(x * x * -0.5)));
      },
      .vjp = {{"grad_output, self, approximate", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), x = v["self"];
        Tensor curve = v.needs("self") ? gelu_curve(x, by_tanh(v, 2)) : none;
        return {v.needs("grad_output") ? Grad(gelu_backward(g, x, kw("approximate", v.arg("approximate")))) : Grad(), v.needs("self") ? Grad(g * v["grad_output"] * curve) : Grad()};
      }}},
  });
  ops.add(silu, {
      .schema = "silu(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self) { return self / (1.0 + loop::exp(-self)); },
      .vjp = {{"self", [](Vjp& v) { return silu_backward(v.grad(), v["self"]); }}},
  });
  ops.add(silu_backward, {
      .schema = "silu_backward(Tensor grad_output, Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr grad, Expr self) {
        Expr s = loop::sigmoid(self);
        return grad * s * (1.0 + self * (1.0 - s));
      },
      .vjp = {{"grad_output, self", [](Vjp& v) -> Grads {   // f'' = s(1 - s)(2 + x(1 - 2s))
        Tensor g = v.grad(0), x = v["self"], s = sigmoid(x);
        return {v.needs("grad_output") ? Grad(silu_backward(g, x)) : Grad(),
                v.needs("self") ? Grad(g * v["grad_output"] * s * (1.0 - s) * (2.0 + x * (1.0 - s * 2.0))) : Grad()};
      }}},
  });
  ops.add({
      .schema = "mish(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self) { return self * loop::tanh(loop::log1p(loop::exp(self))); },
      .vjp = {{"self", [](Vjp& v) { return mish_backward(v.grad(), v["self"]); }}},
  });
  ops.add(mish_backward, {
      .schema = "mish_backward(Tensor grad_output, Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr grad, Expr self) {
        Expr t = loop::tanh(loop::log1p(loop::exp(self)));
        return grad * (t + self * loop::sigmoid(self) * (1.0 - t * t));
      },
      .vjp = {{"grad_output, self", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), x = v["self"];
        if (!v.needs("self")) return {mish_backward(g, x)};
        Tensor t = tanh(softplus(x)), s = sigmoid(x), flat = 1.0 - t * t, dt = s * flat;
        return {v.needs("grad_output") ? Grad(mish_backward(g, x)) : Grad(), g * v["grad_output"] * (dt * 2.0 + x * (dt * (1.0 - s) - s * t * dt * 2.0))};
      }}},
  });
  ops.add(softplus, {
      .schema = "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self, Expr beta, Expr threshold) {
        Expr scaled = self * beta;
        return select(scaled > threshold, self, loop::log1p(loop::exp(scaled)) / beta);
      },
      .vjp = {{"self", [](Vjp& v) { return softplus_backward(v.grad(), v["self"], v.arg("beta"), v.arg("threshold")); }}},
      .promotes = "self",
  });
  ops.add(softplus_backward, {
      .schema = "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr grad, Expr self, Expr beta, Expr threshold) {
        Expr scaled = self * beta, z = loop::exp(scaled);
        return select(scaled > threshold, grad, grad * z / (z + 1.0));
      },
      .vjp = {{"grad_output, self, beta, threshold", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), x = v["self"];
        if (!v.needs("self")) return {softplus_backward(g, x, v.arg("beta"), v.arg("threshold"))};
        Tensor scaled = mul(x, v.arg("beta")), s = sigmoid(scaled);
        return {v.needs("grad_output") ? Grad(softplus_backward(g, x, v.arg("beta"), v.arg("threshold"))) : Grad(),
                where(gt(scaled, v.arg("threshold")), 0.0, mul(g * v["grad_output"] * s * (1.0 - s), v.arg("beta")))};
      }}},
      .promotes = "grad_output, self",
  });

  ops.add(hardtanh, {
      .schema = "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = numeric_meta,
      .scalar = [](const Scalars& x) { return clamped(x["self"], bound(x, 1), bound(x, 2)); },
      .vjp = {{"self", [](Vjp& v) { return hardtanh_backward(v.grad(), v["self"], v.arg("min_val"), v.arg("max_val")); }}},
      .promotes = "self",
  });
  ops.add(hardtanh_backward, {
      .schema = "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr grad, Expr self, Expr min_val, Expr max_val) { return select(self <= min_val || self >= max_val, 0, grad); },
      .vjp = {{"grad_output", [](Vjp& v) { return hardtanh_backward(v.grad(), v["self"], v.arg("min_val"), v.arg("max_val")); }}},
      .promotes = "grad_output, self",
  });
  ops.add({
      .schema = "hardswish(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self) { return self * clamped(self + 3.0, 0.0, 6.0) / 6.0; },
      .vjp = {{"self", [](Vjp& v) { return hardswish_backward(v.grad(), v["self"]); }}},
  });
  ops.add(hardswish_backward, {
      .schema = "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr grad, Expr self) { return select(self <= -3.0, 0.0, select(self < 3.0, grad * (self / 3.0 + 0.5), grad)); },
      .vjp = {{"grad_output, self", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), x = v["self"];
        return {v.needs("grad_output") ? Grad(hardswish_backward(g, x)) : Grad(),
                v.needs("self") ? Grad(where(logical_and(gt(x, -3.0), lt(x, 3.0)), g * v["grad_output"] / 3.0, 0.0)) : Grad()};
      }}},
  });
  ops.add({
      .schema = "hardsigmoid(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self) { return clamped(self + 3.0, 0.0, 6.0) / 6.0; },
      .vjp = {{"self", [](Vjp& v) { return hardsigmoid_backward(v.grad(), v["self"]); }}},
  });
  ops.add(hardsigmoid_backward, {
      .schema = "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr grad, Expr self) { return select(self > -3.0 && self < 3.0, grad * static_cast<double>(1.0f / 6.0f), 0.0); },   // PyTorch's sixth is an f32
      .vjp = {{"grad_output", [](Vjp& v) { return hardsigmoid_backward(v.grad(), v["self"]); }}},
  });
  ops.add(leaky_relu, {
      .schema = "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self, Expr negative_slope) { return select(self > 0.0, self, self * negative_slope); },
      .vjp = {{"self", [](Vjp& v) { return leaky_relu_backward(v.grad(), v["self"], v.arg("negative_slope"), false); }}},
      .promotes = "self",
  });
  ops.add(leaky_relu_backward, {
      .schema = "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr grad, Expr self, Expr negative_slope) { return select(self > 0.0, grad, grad * negative_slope); },   // a result has its argument's sign
      .vjp = {{"grad_output", [](Vjp& v) { return leaky_relu_backward(v.grad(), v["self"], v.arg("negative_slope"), v.arg("self_is_result")); }}},
      .promotes = "grad_output, self",
  });
  ops.add(elu, {
      .schema = "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self, Expr alpha, Expr scale, Expr input_scale) { return select(self < 0.0, loop::expm1(self * input_scale) * (alpha * scale), self * scale); },
      .vjp = {{"self", [](Vjp& v) { return elu_backward(v.grad(), v.arg("alpha"), v.arg("scale"), v.arg("input_scale"), false, v["self"]); }}},
      .promotes = "self",
  });
  ops.add(elu_backward, {
      .schema = "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& s) {
        Expr g = s["grad_output"], x = s["self_or_result"], negative = s["alpha"] * s["scale"];
        Expr slope = s.flag("is_result") ? x + negative : negative * loop::exp(x * s["input_scale"]);
        return select(x <= 0.0, g * s["input_scale"] * slope, g * s["scale"]);
      },
      .vjp = {{"grad_output, alpha, scale, input_scale, is_result, self_or_result", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), x = v["self_or_result"], both = mul(g * v["grad_output"], v.arg("input_scale"));
        Tensor curve = v.flag("is_result") ? both : Tensor(elu_backward(both, v.arg("alpha"), v.arg("scale"), v.arg("input_scale"), false, x));
        return {v.needs("grad_output") ? Grad(elu_backward(g, v.arg("alpha"), v.arg("scale"), v.arg("input_scale"), v.arg("is_result"), x)) : Grad(), none, none, none, none,
                v.needs("self_or_result") ? Grad(where(lt(x, 0.0), curve, 0.0)) : Grad()};
      }}},
      .promotes = "grad_output, self_or_result",
  });
  ops.add({
      .schema = "celu(Tensor self, Scalar alpha=1.) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) {
        double alpha = b.number("alpha");
        b.require(alpha != 0, "alpha: expected a number other than 0, got 0");
        return elu(b["self"], b.arg("alpha"), 1.0, 1 / alpha);
      },
  });
  ops.add({
      .schema = "selu(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return elu(b["self"], 1.6732632423543772848170429916717, 1.0507009873554804934193349852946); },
  });

  ops.add({
      .schema = "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self, Expr lambd) { return select(self >= -lambd && self <= lambd, 0.0, self); },
      .vjp = {{"self", [](Vjp& v) { return hardshrink_backward(v.grad(), v["self"], v.arg("lambd")); }}},
      .promotes = "self",
  });
  ops.add(hardshrink_backward, {
      .schema = "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr grad, Expr self, Expr lambd) { return select(self >= -lambd && self <= lambd, 0.0, grad); },
      .vjp = {{"grad_out", [](Vjp& v) { return hardshrink_backward(v.grad(), v["self"], v.arg("lambd")); }}},
      .promotes = "grad_out, self",
  });
  ops.add({
      .schema = "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.number("lambd") >= 0, "lambd: expected a number that is not negative, got ", m.number("lambd"));
        return floating_meta(m);
      },
      .scalar = [](Expr self, Expr lambd) { return select(self > lambd, self - lambd, select(self < -lambd, self + lambd, self * 0.0)); },
      .vjp = {{"self", [](Vjp& v) { return softshrink_backward(v.grad(), v["self"], v.arg("lambd")); }}},
      .promotes = "self",
  });
  ops.add(softshrink_backward, {
      .schema = "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr grad, Expr self, Expr lambd) { return select(self >= -lambd && self <= lambd, 0.0, grad); },
      .vjp = {{"grad_output", [](Vjp& v) { return softshrink_backward(v.grad(), v["self"], v.arg("lambd")); }}},
      .promotes = "grad_output, self",
  });
  ops.add(logit, {
      .schema = "logit(Tensor self, float? eps=None) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar = [](const Scalars& s) {
        Expr x = s["self"];
        double low = 0, high = 1;
        if (within_unit(s, 1, low, high)) x = select(x < low, low, select(x > high, high, x));
        return loop::log(x / (1.0 - x));
      },
      .vjp = {{"self", [](Vjp& v) { return logit_backward(v.grad(), v["self"], v.arg("eps")); }}},
      .promote = Promote::int_to_float,
  });
  ops.alias(logit, {"special_logit"});
  ops.add(logit_backward, {
      .schema = "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& s) -> Expr {
        Expr g = s["grad_output"], x = s["self"], slope = g / (x * (1.0 - x));
        double low = 0, high = 1;
        if (within_unit(s, 2, low, high)) return select(x < low || x > high, 0.0, slope);
        return select(x < 0.0 || x > 1.0, NAN, select(x == 0.0 || x == 1.0, g * INFINITY, slope));
      },
  });
}

}  // namespace tenon

#include "tenon/ops/activation.h"

#include <cmath>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/infer.h"
#include "tenon/ops/registry.h"

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
      .kind = Kind::pointwise,
      .meta = numeric_meta,
      .scalar = [](const Scalars& x) { return max(x[0], 0); },
      .vjp = [](Vjp& v) -> Grads { return {threshold_backward(v.grad(0), v.out(0), 0)}; },
  });
  ops.add({
      .schema = "relu6(Tensor self) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) { return hardtanh(b[0], 0, 6); },
  });
  ops.add({
      .schema = "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return select(x[0] <= bound(x, 1), bound(x, 2), x[0]); },
      .vjp = [](Vjp& v) -> Grads { return {threshold_backward(v.grad(0), v[0], v.arg(1))}; },
      .promotes = 0b001,
  });
  ops.add(threshold_backward, {
      .schema = "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return select(x[1] <= bound(x, 2, 1), 0, x[0]); },
      .vjp = [](Vjp& v) -> Grads { return {threshold_backward(v.grad(0), v[1], v.arg(2))}; },
      .promotes = 0b011,
  });

  ops.add(sigmoid, {
      .schema = "sigmoid(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return loop::sigmoid(x[0]); },
      .vjp = [](Vjp& v) -> Grads { return {sigmoid_backward(v.grad(0), v.out(0))}; },
      .promote = Promote::int_to_float,
  });
  ops.alias(sigmoid, {"special_expit"});
  ops.add(sigmoid_backward, {
      .schema = "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return x[0] * (1.0 - x[1]) * x[1]; },
      .vjp = [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), y = v[1];
        return {v.needs(0) ? Grad(sigmoid_backward(g, y)) : Grad(), v.needs(1) ? Grad(g * v[0] * (1.0 - y * 2.0)) : Grad()};
      },
  });
  ops.add(tanh, {
      .schema = "tanh(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return loop::tanh(x[0]); },
      .vjp = [](Vjp& v) -> Grads { return {tanh_backward(v.grad(0), v.out(0))}; },
      .promote = Promote::int_to_float,
  });
  ops.add(tanh_backward, {
      .schema = "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& x) { return x[0] * (1.0 - x[1] * x[1]); },
      .vjp = [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), y = v[1];
        return {v.needs(0) ? Grad(tanh_backward(g, y)) : Grad(), v.needs(1) ? Grad(g * v[0] * y * -2.0) : Grad()};
      },
  });

  ops.add(gelu, {
      .schema = "gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& s) -> Expr {
        Expr x = s[0];
        if (by_tanh(s.call, 1)) return 0.5 * x * (1.0 + loop::tanh(beta * (x + kappa * (x * x * x))));
        return x * 0.5 * (1.0 + loop::erf(x * M_SQRT1_2));
      },
      .vjp = [](Vjp& v) -> Grads { return {gelu_backward(v.grad(0), v[0], kw("approximate", v.arg(1)))}; },
  });
  ops.add(gelu_backward, {
      .schema = "gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& s) -> Expr {
        Expr g = s[0], x = s[1];
        if (by_tanh(s.call, 2)) {
          Expr t = loop::tanh(beta * (x + kappa * (x * x * x)));
          Expr slope = beta * (1.0 + 3.0 * kappa * (x * x));
          return g * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope);
        }
        Expr cdf = 0.5 * (1.0 + loop::erf(x * M_SQRT1_2));
        return g * (cdf + x * (density * loop::exp(x * x * -0.5)));
      },
      .vjp = [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), x = v[1];
        Tensor curve = v.needs(1) ? gelu_curve(x, by_tanh(v, 2)) : none;
        return {v.needs(0) ? Grad(gelu_backward(g, x, kw("approximate", v.arg(2)))) : Grad(), v.needs(1) ? Grad(g * v[0] * curve) : Grad()};
      },
  });
  ops.add(silu, {
      .schema = "silu(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return x[0] / (1.0 + loop::exp(-x[0])); },
      .vjp = [](Vjp& v) -> Grads { return {silu_backward(v.grad(0), v[0])}; },
  });
  ops.add(silu_backward, {
      .schema = "silu_backward(Tensor grad_output, Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) {
        Expr s = loop::sigmoid(x[1]);
        return x[0] * s * (1.0 + x[1] * (1.0 - s));
      },
      .vjp = [](Vjp& v) -> Grads {   // f'' = s(1 - s)(2 + x(1 - 2s))
        Tensor g = v.grad(0), x = v[1], s = sigmoid(x);
        return {v.needs(0) ? Grad(silu_backward(g, x)) : Grad(),
                v.needs(1) ? Grad(g * v[0] * s * (1.0 - s) * (2.0 + x * (1.0 - s * 2.0))) : Grad()};
      },
  });
  ops.add({
      .schema = "mish(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return x[0] * loop::tanh(loop::log1p(loop::exp(x[0]))); },
      .vjp = [](Vjp& v) -> Grads { return {mish_backward(v.grad(0), v[0])}; },
  });
  ops.add(mish_backward, {
      .schema = "mish_backward(Tensor grad_output, Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) {
        Expr t = loop::tanh(loop::log1p(loop::exp(x[1])));
        return x[0] * (t + x[1] * loop::sigmoid(x[1]) * (1.0 - t * t));
      },
      .vjp = [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), x = v[1];
        if (!v.needs(1)) return {mish_backward(g, x)};
        Tensor t = tanh(softplus(x)), s = sigmoid(x), flat = 1.0 - t * t, dt = s * flat;
        return {v.needs(0) ? Grad(mish_backward(g, x)) : Grad(), g * v[0] * (dt * 2.0 + x * (dt * (1.0 - s) - s * t * dt * 2.0))};
      },
  });
  ops.add(softplus, {
      .schema = "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) {
        Expr scaled = x[0] * x[1];
        return select(scaled > x[2], x[0], loop::log1p(loop::exp(scaled)) / x[1]);
      },
      .vjp = [](Vjp& v) -> Grads { return {softplus_backward(v.grad(0), v[0], v.arg(1), v.arg(2))}; },
      .promotes = 0b001,
  });
  ops.add(softplus_backward, {
      .schema = "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) {
        Expr scaled = x[1] * x[2], z = loop::exp(scaled);
        return select(scaled > x[3], x[0], x[0] * z / (z + 1.0));
      },
      .vjp = [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), x = v[1];
        if (!v.needs(1)) return {softplus_backward(g, x, v.arg(2), v.arg(3))};
        Tensor scaled = mul(x, v.arg(2)), s = sigmoid(scaled);
        return {v.needs(0) ? Grad(softplus_backward(g, x, v.arg(2), v.arg(3))) : Grad(),
                where(gt(scaled, v.arg(3)), 0.0, mul(g * v[0] * s * (1.0 - s), v.arg(2)))};
      },
      .promotes = 0b0011,
  });

  ops.add(hardtanh, {
      .schema = "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
      .kind = Kind::pointwise,
      .meta = numeric_meta,
      .scalar = [](const Scalars& x) { return clamped(x[0], bound(x, 1), bound(x, 2)); },
      .vjp = [](Vjp& v) -> Grads { return {hardtanh_backward(v.grad(0), v[0], v.arg(1), v.arg(2))}; },
      .promotes = 0b001,
  });
  ops.add(hardtanh_backward, {
      .schema = "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return select(x[1] <= x[2] || x[1] >= x[3], 0, x[0]); },
      .vjp = [](Vjp& v) -> Grads { return {hardtanh_backward(v.grad(0), v[1], v.arg(2), v.arg(3))}; },
      .promotes = 0b0011,
  });
  ops.add({
      .schema = "hardswish(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return x[0] * clamped(x[0] + 3.0, 0.0, 6.0) / 6.0; },
      .vjp = [](Vjp& v) -> Grads { return {hardswish_backward(v.grad(0), v[0])}; },
  });
  ops.add(hardswish_backward, {
      .schema = "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return select(x[1] <= -3.0, 0.0, select(x[1] < 3.0, x[0] * (x[1] / 3.0 + 0.5), x[0])); },
      .vjp = [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), x = v[1];
        return {v.needs(0) ? Grad(hardswish_backward(g, x)) : Grad(),
                v.needs(1) ? Grad(where(logical_and(gt(x, -3.0), lt(x, 3.0)), g * v[0] / 3.0, 0.0)) : Grad()};
      },
  });
  ops.add({
      .schema = "hardsigmoid(Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return clamped(x[0] + 3.0, 0.0, 6.0) / 6.0; },
      .vjp = [](Vjp& v) -> Grads { return {hardsigmoid_backward(v.grad(0), v[0])}; },
  });
  ops.add(hardsigmoid_backward, {
      .schema = "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return select(x[1] > -3.0 && x[1] < 3.0, x[0] * static_cast<double>(1.0f / 6.0f), 0.0); },   // PyTorch's sixth is an f32
      .vjp = [](Vjp& v) -> Grads { return {hardsigmoid_backward(v.grad(0), v[1])}; },
  });
  ops.add(leaky_relu, {
      .schema = "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return select(x[0] > 0.0, x[0], x[0] * x[1]); },
      .vjp = [](Vjp& v) -> Grads { return {leaky_relu_backward(v.grad(0), v[0], v.arg(1), false)}; },
      .promotes = 0b001,
  });
  ops.add(leaky_relu_backward, {
      .schema = "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return select(x[1] > 0.0, x[0], x[0] * x[2]); },   // a result has its argument's sign
      .vjp = [](Vjp& v) -> Grads { return {leaky_relu_backward(v.grad(0), v[1], v.arg(2), v.arg(3))}; },
      .promotes = 0b0011,
  });
  ops.add(elu, {
      .schema = "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return select(x[0] < 0.0, loop::expm1(x[0] * x[3]) * (x[1] * x[2]), x[0] * x[2]); },
      .vjp = [](Vjp& v) -> Grads { return {elu_backward(v.grad(0), v.arg(1), v.arg(2), v.arg(3), false, v[0])}; },
      .promotes = 0b0001,
  });
  ops.add(elu_backward, {
      .schema = "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, Tensor self_or_result) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& s) {
        Expr g = s[0], x = s[5], negative = s[1] * s[2];
        Expr slope = s.call.flag(4) ? x + negative : negative * loop::exp(x * s[3]);
        return select(x <= 0.0, g * s[3] * slope, g * s[2]);
      },
      .vjp = [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), x = v[5], both = mul(g * v[0], v.arg(3));
        Tensor curve = v.flag(4) ? both : Tensor(elu_backward(both, v.arg(1), v.arg(2), v.arg(3), false, x));
        return {v.needs(0) ? Grad(elu_backward(g, v.arg(1), v.arg(2), v.arg(3), v.arg(4), x)) : Grad(), none, none, none, none,
                v.needs(5) ? Grad(where(lt(x, 0.0), curve, 0.0)) : Grad()};
      },
      .promotes = 0b100001,
  });
  ops.add({
      .schema = "celu(Tensor self, Scalar alpha=1.) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) {
        double alpha = b.number(1);
        b.require(alpha != 0, "alpha: expected a number other than 0, got 0");
        return elu(b[0], b.arg(1), 1.0, 1 / alpha);
      },
  });
  ops.add({
      .schema = "selu(Tensor self) -> Tensor",
      .kind = Kind::composite,
      .decompose = [](Build& b) { return elu(b[0], 1.6732632423543772848170429916717, 1.0507009873554804934193349852946); },
  });

  ops.add({
      .schema = "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return select(x[0] >= -x[1] && x[0] <= x[1], 0.0, x[0]); },
      .vjp = [](Vjp& v) -> Grads { return {hardshrink_backward(v.grad(0), v[0], v.arg(1))}; },
      .promotes = 0b001,
  });
  ops.add(hardshrink_backward, {
      .schema = "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return select(x[1] >= -x[2] && x[1] <= x[2], 0.0, x[0]); },
      .vjp = [](Vjp& v) -> Grads { return {hardshrink_backward(v.grad(0), v[1], v.arg(2))}; },
      .promotes = 0b0011,
  });
  ops.add({
      .schema = "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
      .kind = Kind::pointwise,
      .meta = [](MetaCall& m) -> Metas {
        m.require(m.number(1) >= 0, "lambd: expected a number that is not negative, got ", m.number(1));
        return floating_meta(m);
      },
      .scalar = [](const Scalars& x) { return select(x[0] > x[1], x[0] - x[1], select(x[0] < -x[1], x[0] + x[1], x[0] * 0.0)); },
      .vjp = [](Vjp& v) -> Grads { return {softshrink_backward(v.grad(0), v[0], v.arg(1))}; },
      .promotes = 0b001,
  });
  ops.add(softshrink_backward, {
      .schema = "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& x) { return select(x[1] >= -x[2] && x[1] <= x[2], 0.0, x[0]); },
      .vjp = [](Vjp& v) -> Grads { return {softshrink_backward(v.grad(0), v[1], v.arg(2))}; },
      .promotes = 0b0011,
  });
  ops.add(logit, {
      .schema = "logit(Tensor self, float? eps=None) -> Tensor",
      .kind = Kind::pointwise,
      .scalar = [](const Scalars& s) {
        Expr x = s[0];
        double low = 0, high = 1;
        if (within_unit(s.call, 1, low, high)) x = select(x < low, low, select(x > high, high, x));
        return loop::log(x / (1.0 - x));
      },
      .vjp = [](Vjp& v) -> Grads { return {logit_backward(v.grad(0), v[0], v.arg(1))}; },
      .promote = Promote::int_to_float,
  });
  ops.alias(logit, {"special_logit"});
  ops.add(logit_backward, {
      .schema = "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
      .kind = Kind::pointwise,
      .meta = floating_meta,
      .scalar = [](const Scalars& s) -> Expr {
        Expr g = s[0], x = s[1], slope = g / (x * (1.0 - x));
        double low = 0, high = 1;
        if (within_unit(s.call, 2, low, high)) return select(x < low || x > high, 0.0, slope);
        return select(x < 0.0 || x > 1.0, NAN, select(x == 0.0 || x == 1.0, g * INFINITY, slope));
      },
  });
}

}  // namespace tenon

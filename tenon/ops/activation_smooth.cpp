#include <cmath>

#include "tenon/ops/activation.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/complex_functions.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/shape.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/rules/guards.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle sigmoid, tanh, gelu, silu, softplus, log_sigmoid, sigmoid_backward, tanh_backward, gelu_backward, silu_backward;

static Handle mish_backward, softplus_backward, logit, logit_backward, glu_backward, log_sigmoid_forward,
    log_sigmoid_backward;

namespace {

using loop::Expr;

constexpr double kappa = 0.044715;                        // of the tanh form of gelu
constexpr double beta = M_SQRT2 * M_2_SQRTPI * 0.5;       // sqrt(2 / pi)
constexpr double density = M_2_SQRTPI * M_SQRT1_2 * 0.5;  // 1 / sqrt(2 * pi)

bool by_tanh(const ArgsView& call) {
  const std::string& how = call.string("approximate");
  call.require(how == "none" || how == "tanh", "approximate: expected 'none' or 'tanh', got ", quoted(how));
  return how == "tanh";
}

// The second derivative of gelu.
Tensor gelu_curve(const Tensor& x, bool tanh_form) {
  Tensor square = x * x;
  if (!tanh_form) return exp(square * -0.5) * density * (2.0 - square);
  Tensor t = tanh((x + square * x * kappa) * beta), flat = 1.0 - t * t, slope = (square * (3 * kappa) + 1.0) * beta;
  return flat * slope + x * 0.5 * (flat * x * (6 * beta * kappa) - t * flat * slope * slope * 2.0);
}

// The size of either half of a dimension.
SymInt halved(const ArgsView& m, const TensorMeta& x, size_t dim) {
  SymInt size = x.sizes[dim];
  relies_on_equal(m, sym::mod(size, 2), 0, "expected an even size of dimension ", dim, ", got ", x);
  return sym::floor_div(size, 2);
}
size_t halved_dim(const ArgsView& m, const TensorMeta& x) {
  m.require(x.rank() > 0, "expected a tensor with at least one dimension, got ", x);
  return m.dim("dim", x.rank());
}

}  // namespace

void register_activation_smooth(Registry& ops) {
  ops.add(sigmoid, {
                       .schema = "sigmoid(Tensor self) -> Tensor",
                       .kind = OpKind::pointwise,
                       .scalar = [](Expr self) { return loop::sigmoid(self); },
                       .vjp = {{"self", [](Vjp& v) { return sigmoid_backward(v.grad(), v.out()); }}},
                       .promote = Promote::int_to_float,
                       .complex = complex_of_one<complex::sigmoid>,
                   });
  ops.alias(sigmoid, {"special_expit"});
  ops.add(sigmoid_backward,
          {
              .schema = "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor",
              .kind = OpKind::pointwise,
              .scalar = [](Expr grad, Expr output) { return grad * (1.0 - output) * output; },
              .vjp = {{"grad_output", [](Vjp& v) { return sigmoid_backward(v.grad(), v["output"]); }},
                      {"output", [](Vjp& v) { return v.grad() * v["grad_output"] * (1.0 - v["output"] * 2.0); }}},
          });
  ops.add(tanh, {
                    .schema = "tanh(Tensor self) -> Tensor",
                    .kind = OpKind::pointwise,
                    .scalar = [](Expr self) { return loop::tanh(self); },
                    .vjp = {{"self", [](Vjp& v) { return tanh_backward(v.grad(), v.out()); }}},
                    .promote = Promote::int_to_float,
                    .complex = complex_of_one<complex::tanh>,
                });
  ops.add(tanh_backward,
          {
              .schema = "tanh_backward(Tensor grad_output, Tensor output) -> Tensor",
              .kind = OpKind::pointwise,
              .scalar = [](Expr grad, Expr output) { return grad * (1.0 - output * output); },
              .vjp = {{"grad_output", [](Vjp& v) { return tanh_backward(v.grad(), v["output"]); }},
                      {"output", [](Vjp& v) { return v.grad() * v["grad_output"] * v["output"] * -2.0; }}},
          });

  ops.add(
      gelu,
      {
          .schema = "gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
          .kind = OpKind::pointwise,
          .meta = floating_meta,
          .scalar = [](const Scalars& s) -> Expr {
            Expr x = s["self"];
            if (by_tanh(s)) return 0.5 * x * (1.0 + loop::tanh(beta * (x + kappa * (x * x * x))));
            return x * 0.5 * (1.0 + loop::erf(x * M_SQRT1_2));
          },
          .vjp = {{"self",
                   [](Vjp& v) { return gelu_backward(v.grad(), v["self"], kw("approximate", v.arg("approximate"))); }}},
      });
  ops.add(
      gelu_backward,
      {
          .schema = "gelu_backward(Tensor grad_output, Tensor self, *, str approximate=\"none\") -> Tensor",
          .kind = OpKind::pointwise,
          .meta = floating_meta,
          .scalar = [](const Scalars& s) -> Expr {
            Expr g = s["grad_output"], x = s["self"];
            if (by_tanh(s)) {
              Expr t = loop::tanh(beta * (x + kappa * (x * x * x)));
              Expr slope = beta * (1.0 + 3.0 * kappa * (x * x));
              return g * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope);
            }
            Expr cdf = 0.5 * (1.0 + loop::erf(x * M_SQRT1_2));
            return g * (cdf + x * (density * loop::exp(x * x * -0.5)));
          },
          .vjp = {{"grad_output",
                   [](Vjp& v) { return gelu_backward(v.grad(), v["self"], kw("approximate", v.arg("approximate"))); }},
                  {"self", [](Vjp& v) { return v.grad() * v["grad_output"] * gelu_curve(v["self"], by_tanh(v)); }}},
      });
  ops.add(silu, {
                    .schema = "silu(Tensor self) -> Tensor",
                    .kind = OpKind::pointwise,
                    .meta = floating_meta,
                    .scalar = [](Expr self) { return self / (1.0 + loop::exp(-self)); },
                    .vjp = {{"self", [](Vjp& v) { return silu_backward(v.grad(), v["self"]); }}},
                    .complex = [](Build& b) { return mul(b["self"], sigmoid(b["self"])); },
                });
  ops.add(silu_backward, {
                             .schema = "silu_backward(Tensor grad_output, Tensor self) -> Tensor",
                             .kind = OpKind::pointwise,
                             .meta = floating_meta,
                             .scalar =
                                 [](Expr grad, Expr self) {
                                   Expr s = loop::sigmoid(self);
                                   return grad * s * (1.0 + self * (1.0 - s));
                                 },
                             .vjp = {{"grad_output", [](Vjp& v) { return silu_backward(v.grad(), v["self"]); }},
                                     {"self",
                                      [](Vjp& v) {  // f'' = s(1 - s)(2 + x(1 - 2s))
                                        Tensor x = v["self"], s = sigmoid(x);
                                        return v.grad() * v["grad_output"] * s * (1.0 - s) *
                                               (2.0 + x * (1.0 - s * 2.0));
                                      }}},
                         });
  ops.add({
      .schema = "mish(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self) { return self * loop::tanh(loop::log1p(loop::exp(self))); },
      .vjp = {{"self", [](Vjp& v) { return mish_backward(v.grad(), v["self"]); }}},
  });
  ops.add(mish_backward,
          {
              .schema = "mish_backward(Tensor grad_output, Tensor self) -> Tensor",
              .kind = OpKind::pointwise,
              .meta = floating_meta,
              .scalar =
                  [](Expr grad, Expr self) {
                    Expr t = loop::tanh(loop::log1p(loop::exp(self)));
                    return grad * (t + self * loop::sigmoid(self) * (1.0 - t * t));
                  },
              .vjp = {{"grad_output", [](Vjp& v) { return mish_backward(v.grad(), v["self"]); }},
                      {"self",
                       [](Vjp& v) {
                         Tensor x = v["self"], t = tanh(softplus(x)), s = sigmoid(x), flat = 1.0 - t * t, dt = s * flat;
                         return v.grad() * v["grad_output"] * (dt * 2.0 + x * (dt * (1.0 - s) - s * t * dt * 2.0));
                       }}},
          });
  ops.add(
      softplus,
      {
          .schema = "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor",
          .kind = OpKind::pointwise,
          .meta = floating_meta,
          .scalar =
              [](Expr self, Expr beta, Expr threshold) {
                Expr scaled = self * beta;
                return loop::select(scaled > threshold, self, loop::log1p(loop::exp(scaled)) / beta);
              },
          .vjp = {{"self",
                   [](Vjp& v) { return softplus_backward(v.grad(), v["self"], v.arg("beta"), v.arg("threshold")); }}},
          .promotes = "self",
      });
  ops.add(
      softplus_backward,
      {
          .schema = "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
          .kind = OpKind::pointwise,
          .meta = floating_meta,
          .scalar =
              [](Expr grad, Expr self, Expr beta, Expr threshold) {
                Expr scaled = self * beta, z = loop::exp(scaled);
                return loop::select(scaled > threshold, grad, grad * z / (z + 1.0));
              },
          .vjp = {{"grad_output",
                   [](Vjp& v) { return softplus_backward(v.grad(), v["self"], v.arg("beta"), v.arg("threshold")); }},
                  {"self",
                   [](Vjp& v) {
                     Tensor scaled = mul(v["self"], v.arg("beta")), s = sigmoid(scaled);
                     return where(gt(scaled, v.arg("threshold")), 0.0,
                                  mul(v.grad() * v["grad_output"] * s * (1.0 - s), v.arg("beta")));
                   }}},
          .promotes = "grad_output, self",
      });

  ops.add(log_sigmoid, {
                           .schema = "log_sigmoid(Tensor self) -> Tensor",
                           .kind = OpKind::composite,
                           .decompose = [](Build& b) -> Results { return one(log_sigmoid_forward(b["self"])[0]); },
                       });
  ops.add(log_sigmoid_forward,
          {
              .schema = "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
              .meta = [](MetaCall& m) -> Metas {
                const TensorMeta& x = m.meta("self");
                m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x);
                return {like(x, x.sizes), like(x, x.sizes)};
              },
              .lower =
                  [](Lower& l) {
                    l.stage(Sizes(l["self"].sizes()), [&](const Index& i) {
                      Expr x = l["self"].at(i), z = loop::exp(-loop::abs(x));
                      l.store(l.out(0), i, min(x, 0.0) - loop::log1p(z));
                      l.store(l.out(1), i, z);
                    });
                  },
              .vjp = {{"self", [](Vjp& v) { return log_sigmoid_backward(v.grad(), v["self"], v.out(1)); }}},
          });
  ops.add(log_sigmoid_backward,
          {
              .schema = "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor",
              .kind = OpKind::pointwise,
              .meta = floating_meta,
              .scalar =
                  [](Expr grad, Expr self, Expr buffer) {
                    Expr part = buffer / (1.0 + buffer);
                    return grad * loop::select(self < 0.0, 1.0 - part, part);
                  },
              .vjp = {{"grad_output", [](Vjp& v) { return log_sigmoid_backward(v.grad(), v["self"], v["buffer"]); }},
                      {"self",
                       [](Vjp& v) {
                         Tensor y = sigmoid(v["self"]);
                         return v.grad() * v["grad_output"] * (y - 1.0) * y;
                       }}},
          });

  ops.add(logit, {
                     .schema = "logit(Tensor self, float? eps=None) -> Tensor",
                     .kind = OpKind::pointwise,
                     .scalar =
                         [](const Scalars& s) {
                           Expr x = s["self"];
                           if (s.given("eps")) {
                             double low = s.number("eps"), high = 1 - low;
                             x = loop::select(x < low, low, loop::select(x > high, high, x));
                           }
                           return loop::log(x / (1.0 - x));
                         },
                     .vjp = {{"self", [](Vjp& v) { return logit_backward(v.grad(), v["self"], v.arg("eps")); }}},
                     .promote = Promote::int_to_float,
                 });
  ops.alias(logit, {"special_logit"});
  ops.add(logit_backward,
          {
              .schema = "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor",
              .kind = OpKind::pointwise,
              .meta = floating_meta,
              .scalar = [](const Scalars& s) -> Expr {
                Expr g = s["grad_output"], x = s["self"], slope = g / (x * (1.0 - x));
                if (s.given("eps")) {
                  double low = s.number("eps"), high = 1 - low;
                  return loop::select(x < low || x > high, 0.0, slope);
                }
                return loop::select(x < 0.0 || x > 1.0, NAN, loop::select(x == 0.0 || x == 1.0, g * INFINITY, slope));
              },
              .vjp = {{"grad_output", [](Vjp& v) { return logit_backward(v.grad(), v["self"], v.arg("eps")); }},
                      {"self",
                       [](Vjp& v) {  // d/dx 1 / (x - x²) = (2 x - 1) / (x - x²)²
                         Tensor x = v["self"];
                         Tensor slope = logit_backward(v["grad_output"], x, v.arg("eps"));
                         return v.grad() * slope * (2.0 * x - 1.0) / (x * (1.0 - x));
                       }}},
          });

  ops.add({
      .schema = "glu(Tensor self, int dim=-1) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta& x = m.meta("self");
        m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x);
        size_t dim = halved_dim(m, x);
        TensorMeta half = x;
        half.sizes[dim] = halved(m, x, dim);
        TensorMeta out = like(x, half.sizes);
        const TensorMeta* operand = &half;
        out.strides = pointwise_strides(out.sizes, std::span<const TensorMeta* const>(&operand, 1));
        return out;
      },
      .lower =
          [](Lower& l) {
            size_t dim = halved_dim(l, l.meta("self"));
            SymInt half = halved(l, l.meta("self"), dim);
            l.tensor([&](const Index& i) {
              return l["self"].at(i) * loop::sigmoid(l["self"].at(i.with(dim, i[dim] + l.extent(half))));
            });
          },
      .vjp = {{"self", [](Vjp& v) { return glu_backward(v.grad(), v["self"], v.arg("dim")); }}},
  });
  ops.add(glu_backward,
          {
              .schema = "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
              .meta = [](MetaCall& m) -> Metas { return like(m.meta("self"), m.meta("self").sizes); },
              .lower =
                  [](Lower& l) {
                    size_t dim = halved_dim(l, l.meta("self"));
                    SymInt half = halved(l, l.meta("self"), dim);
                    l.stage(Sizes(l["grad_output"].sizes()), [&](const Index& i) {
                      Index second = i.with(dim, i[dim] + l.extent(half));
                      Expr g = l["grad_output"].at(i), a = l["self"].at(i), s = loop::sigmoid(l["self"].at(second));
                      l.store(l.out(), i, s * g);
                      l.store(l.out(), second, (1.0 - s) * s * g * a);
                    });
                  },
              .vjp = {{"grad_output, self",
                       [](Vjp& v) -> Grads {
                         size_t dim = halved_dim(v, v.meta("self"));
                         SymInt half = halved(v, v.meta("self"), dim), whole = v.meta("self").sizes[dim];
                         auto first = [&](const Tensor& t) -> Tensor { return slice(t, dim, 0, half); };
                         auto second = [&](const Tensor& t) -> Tensor { return slice(t, dim, half, whole); };
                         Tensor g = v["grad_output"], a = first(v["self"]), s = sigmoid(second(v["self"])),
                                slope = s * (1.0 - s);
                         Tensor to_a = first(v.grad()), to_b = second(v.grad());
                         Tensor in_a = to_b * g * slope, in_b = slope * g * (to_a + to_b * a * (1.0 - s * 2.0));
                         return {s * to_a + slope * a * to_b, cat(std::vector<Tensor>{in_a, in_b}, dim)};
                       }}},
          });
}

}  // namespace tenon

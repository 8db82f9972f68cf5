#include "tenon/ops/activation.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/logical.h"
#include "tenon/ops/random.h"
#include "tenon/ops/views.h"
#include "tenon/ops/where.h"
#include "tenon/ops/writing.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle relu, hardtanh, leaky_relu, elu, threshold_backward, leaky_relu_backward;

static Handle hardtanh_backward, hardswish_backward, hardsigmoid_backward, elu_backward, hardshrink_backward,
    softshrink_backward, prelu_kernel, prelu_backward, rrelu_functional;

namespace {

using loop::Expr;

Expr clamped(Expr x, Expr low, Expr high) { return min(max(x, low), high); }

}  // namespace

void register_activation_piecewise(Registry& ops) {
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
  // Bounds and values of ops that keep self's dtype are numbers of that dtype: 2.7 is 2 beside integers.
  ops.add({
      .schema = "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
      .kind = OpKind::pointwise,
      .scalar =
          [](Expr self, Expr threshold, Expr value) {
            return loop::select(self <= cast(threshold, self.type()), cast(value, self.type()), self);
          },
      .vjp = {{"self", [](Vjp& v) { return threshold_backward(v.grad(), v["self"], v.arg("threshold")); }}},
      .promotes = "self",
  });
  ops.add(
      threshold_backward,
      {
          .schema = "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor",
          .kind = OpKind::pointwise,
          .scalar = [](Expr grad, Expr self,
                       Expr threshold) { return loop::select(self <= cast(threshold, self.type()), 0, grad); },
          .vjp = {{"grad_output", [](Vjp& v) { return threshold_backward(v.grad(), v["self"], v.arg("threshold")); }}},
          .promotes = "grad_output, self",
      });
  ops.add(
      hardtanh,
      {
          .schema = "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
          .kind = OpKind::pointwise,
          .meta = numeric_meta,
          .scalar = [](Expr self, Expr min_val,
                       Expr max_val) { return clamped(self, cast(min_val, self.type()), cast(max_val, self.type())); },
          .vjp = {{"self",
                   [](Vjp& v) { return hardtanh_backward(v.grad(), v["self"], v.arg("min_val"), v.arg("max_val")); }}},
          .promotes = "self",
      });
  ops.add(
      hardtanh_backward,
      {
          .schema = "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
          .kind = OpKind::pointwise,
          .meta = floating_meta,
          .scalar = [](Expr grad, Expr self, Expr min_val,
                       Expr max_val) { return loop::select(self <= min_val || self >= max_val, 0, grad); },
          .vjp = {{"grad_output",
                   [](Vjp& v) { return hardtanh_backward(v.grad(), v["self"], v.arg("min_val"), v.arg("max_val")); }}},
          .promotes = "grad_output, self",
      });
  ops.add({
      .schema = "hardswish(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self) { return self * clamped(self + 3.0, 0.0, 6.0) / 6.0; },
      .vjp = {{"self", [](Vjp& v) { return hardswish_backward(v.grad(), v["self"]); }}},
  });
  ops.add(hardswish_backward,
          {
              .schema = "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor",
              .kind = OpKind::pointwise,
              .meta = floating_meta,
              .scalar =
                  [](Expr grad, Expr self) {
                    return loop::select(self <= -3.0, 0.0, loop::select(self < 3.0, grad * (self / 3.0 + 0.5), grad));
                  },
              .vjp = {{"grad_output", [](Vjp& v) { return hardswish_backward(v.grad(), v["self"]); }},
                      {"self",
                       [](Vjp& v) {
                         Tensor x = v["self"];
                         return where(logical_and(gt(x, -3.0), lt(x, 3.0)), v.grad() * v["grad_output"] / 3.0, 0.0);
                       }}},
          });
  ops.add({
      .schema = "hardsigmoid(Tensor self) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self) { return clamped(self + 3.0, 0.0, 6.0) / 6.0; },
      .vjp = {{"self", [](Vjp& v) { return hardsigmoid_backward(v.grad(), v["self"]); }}},
  });
  ops.add(hardsigmoid_backward,
          {
              .schema = "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor",
              .kind = OpKind::pointwise,
              .meta = floating_meta,
              .scalar =
                  [](Expr grad, Expr self) {
                    return loop::select(self > -3.0 && self < 3.0, grad * static_cast<double>(1.0f / 6.0f), 0.0);
                  },  // PyTorch's sixth is an f32
              .vjp = {{"grad_output", [](Vjp& v) { return hardsigmoid_backward(v.grad(), v["self"]); }}},
          });
  ops.add({
      .schema = "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self, Expr lambd) { return loop::select(self >= -lambd && self <= lambd, 0.0, self); },
      .vjp = {{"self", [](Vjp& v) { return hardshrink_backward(v.grad(), v["self"], v.arg("lambd")); }}},
      .promotes = "self",
  });
  ops.add(hardshrink_backward,
          {
              .schema = "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor",
              .kind = OpKind::pointwise,
              .meta = floating_meta,
              .scalar = [](Expr grad, Expr self,
                           Expr lambd) { return loop::select(self >= -lambd && self <= lambd, 0.0, grad); },
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
      .scalar =
          [](Expr self, Expr lambd) {
            return loop::select(self > lambd, self - lambd, loop::select(self < -lambd, self + lambd, self * 0.0));
          },
      .vjp = {{"self", [](Vjp& v) { return softshrink_backward(v.grad(), v["self"], v.arg("lambd")); }}},
      .promotes = "self",
  });
  ops.add(softshrink_backward,
          {
              .schema = "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor",
              .kind = OpKind::pointwise,
              .meta = floating_meta,
              .scalar = [](Expr grad, Expr self,
                           Expr lambd) { return loop::select(self >= -lambd && self <= lambd, 0.0, grad); },
              .vjp = {{"grad_output", [](Vjp& v) { return softshrink_backward(v.grad(), v["self"], v.arg("lambd")); }}},
              .promotes = "grad_output, self",
          });

  ops.add(
      leaky_relu,
      {
          .schema = "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
          .kind = OpKind::pointwise,
          .meta = floating_meta,
          .scalar = [](Expr self,
                       Expr negative_slope) { return loop::select(self > 0.0, self, self * negative_slope); },
          .vjp = {{"self",
                   [](Vjp& v) { return leaky_relu_backward(v.grad(), v["self"], v.arg("negative_slope"), false); }}},
          .promotes = "self",
      });
  ops.add(leaky_relu_backward, {
                                   .schema = "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar "
                                             "negative_slope, bool self_is_result) -> Tensor",
                                   .kind = OpKind::pointwise,
                                   .meta = floating_meta,
                                   .scalar =
                                       [](Expr grad, Expr self, Expr negative_slope) {
                                         return loop::select(self > 0.0, grad, grad * negative_slope);
                                       },  // a result has its argument's sign
                                   .vjp = {{"grad_output",
                                            [](Vjp& v) {
                                              return leaky_relu_backward(v.grad(), v["self"], v.arg("negative_slope"),
                                                                         v.arg("self_is_result"));
                                            }}},
                                   .promotes = "grad_output, self",
                               });
  ops.add(elu, {
                   .schema = "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor",
                   .kind = OpKind::pointwise,
                   .meta = floating_meta,
                   .scalar =
                       [](Expr self, Expr alpha, Expr scale, Expr input_scale) {
                         return loop::select(self < 0.0, loop::expm1(self * input_scale) * (alpha * scale),
                                             self * scale);
                       },
                   .vjp = {{"self",
                            [](Vjp& v) {
                              return elu_backward(v.grad(), v.arg("alpha"), v.arg("scale"), v.arg("input_scale"), false,
                                                  v["self"]);
                            }}},
                   .promotes = "self",
               });
  ops.add(elu_backward,
          {
              .schema = "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool "
                        "is_result, Tensor self_or_result) -> Tensor",
              .kind = OpKind::pointwise,
              .meta = floating_meta,
              .scalar =
                  [](const Scalars& s) {
                    Expr g = s["grad_output"], x = s["self_or_result"], negative = s["alpha"] * s["scale"];
                    Expr slope = s.flag("is_result") ? x + negative : negative * loop::exp(x * s["input_scale"]);
                    return loop::select(x <= 0.0, g * s["input_scale"] * slope, g * s["scale"]);
                  },
              .vjp = {{"grad_output",
                       [](Vjp& v) {
                         return elu_backward(v.grad(), v.arg("alpha"), v.arg("scale"), v.arg("input_scale"),
                                             v.arg("is_result"), v["self_or_result"]);
                       }},
                      {"self_or_result",
                       [](Vjp& v) {
                         Tensor x = v["self_or_result"], slope = mul(v.grad() * v["grad_output"], v.arg("input_scale"));
                         if (!v.flag("is_result"))
                           slope = elu_backward(slope, v.arg("alpha"), v.arg("scale"), v.arg("input_scale"), false, x);
                         return where(lt(x, 0.0), slope, 0.0);
                       }}},
              .promotes = "grad_output, self_or_result",
          });
  ops.add({
      .schema = "celu(Tensor self, Scalar alpha=1.) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            double alpha = b.number("alpha");
            b.require(alpha != 0, "alpha: expected a number other than 0, got 0");
            return elu(b["self"], b.arg("alpha"), 1.0, 1 / alpha);
          },
  });
  ops.add({
      .schema = "selu(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) { return elu(b["self"], 1.6732632423543772848170429916717, 1.0507009873554804934193349852946); },
  });

  ops.add({
      .schema = "prelu(Tensor self, Tensor weight) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor x = b["self"], w = b["weight"];
            b.require(x.dtype() == w.dtype(), "weight: expected a tensor of ", x.dtype(), " like self, got ", w.meta());
            b.require(w.rank() <= 1, "weight: expected at most one dimension, got ", w.meta());
            Sizes sizes(x.rank(), SymInt(1));
            if (x.rank() >= 2) {
              sizes[1] = w.numel();
              b.require(!sizes[1].is_int() || !x.size(1).is_int() || sizes[1] == SymInt(1) || sizes[1] == x.size(1),
                        "weight: expected 1 or ", x.size(1), " numbers, one per channel, got ", sizes[1]);
            }
            return prelu_kernel(x, w.sizes() == sizes ? w : Tensor(reshape(w, sizes)));
          },
  });
  ops.add(prelu_kernel,
          {
              .schema = "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
              .kind = OpKind::pointwise,
              .meta = floating_meta,
              .scalar = [](Expr self, Expr weight) { return loop::select(self > 0.0, self, weight * self); },
              .vjp = {{"self, weight",
                       [](Vjp& v) -> Grads {
                         Results r = prelu_backward(v.grad(), v["self"], v["weight"]);
                         return {r[0], r[1]};
                       }}},
          });
  ops.add(prelu_backward,
          {
              .schema = "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
              .meta = [](MetaCall& m) -> Metas {
                TensorMeta out = like(m.meta("self"), broadcast_sizes(m));
                const TensorMeta* operands[] = {&m.meta("self"), &m.meta("weight"), &m.meta("grad_output")};
                out.strides = pointwise_strides(out.sizes, operands);
                return {out, out};
              },
              .lower =
                  [](Lower& l) {
                    l.stage(Sizes(l.out().sizes()), [&](const Index& i) {
                      Expr g = l["grad_output"].broadcast_at(i), x = l["self"].broadcast_at(i),
                           w = l["weight"].broadcast_at(i), positive = x > 0.0;
                      l.store(l.out(0), i, loop::select(positive, g, w * g));
                      l.store(l.out(1), i, loop::select(positive, 0.0, x * g));
                    });
                  },
              .vjp = {{"grad_output, self, weight",
                       [](Vjp& v) -> Grads {
                         Tensor g = v["grad_output"], x = v["self"], w = v["weight"], first = v.grad(0),
                                second = v.grad(1), positive = gt(x, 0.0);
                         Tensor to_grad = first ? Tensor(where(positive, first, first * w)) : none, to_self, to_weight;
                         if (second) {
                           Tensor part = where(positive, 0.0, second * x);
                           to_grad = to_grad ? to_grad + part : part;
                           to_self = where(positive, 0.0, g * second);
                         }
                         if (first) to_weight = where(positive, 0.0, g * first);
                         return {to_grad, to_self, to_weight};
                       }}},
          });
  ops.add({
      .schema = "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, "
                "Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) -> Results {
        double lower = b.number("lower"), upper = b.number("upper");
        if (!b.flag("training")) return leaky_relu(b["self"], (lower + upper) / 2);
        Tensor x = b["self"], slope = uniform_like(x) * (upper - lower) + lower;
        return mul(x, where(le(x, 0.0), slope, 1.0));
      },
  });
  ops.add(rrelu_functional,
          {
              .schema = "rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar "
                        "upper=0.33333333333333331, bool training=False, "
                        "Generator? generator=None) -> (Tensor, Tensor noise_out)",
              .kind = OpKind::composite,
              .traits = {.random = true},
              .decompose = [](Build& b) -> Results {
                double lower = b.number("lower"), upper = b.number("upper");
                Tensor x = b["self"];
                b.require(is_floating(x.dtype()), "self: expected a floating point tensor, got ", x.meta());
                b.require(b["noise"].sizes() == x.sizes(), "noise: expected the sizes of ", x.meta(), ", got ",
                          b["noise"].meta());
                if (!b.flag("training"))
                  return {{CallArg(Tensor(leaky_relu(x, (lower + upper) / 2))), CallArg(Tensor(clone(b["noise"])))}};
                Tensor noise = where(le(x, 0.0), uniform_like(x) * (upper - lower) + lower, 1.0);
                return {{CallArg(x * noise), CallArg(noise)}};
              },
          });
  ops.add({
      .schema = "rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, "
                "bool training=False, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) -> Results {
        Results r = rrelu_functional(b["self"], b["noise"], b.arg("lower"), b.arg("upper"), b.arg("training"));
        if (b.flag("training")) write(b["noise"], r[1]);
        return one(r[0]);
      },
  });
  ops.add({
      .schema = "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, "
                "bool training, bool self_is_result) "
                "-> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        double lower = b.number("lower"), upper = b.number("upper");
        if (b.flag("training") && upper - lower > 1e-6) return mul(b["grad_output"], b["noise"]);
        return leaky_relu_backward(b["grad_output"], b["self"], (lower + upper) / 2, b.arg("self_is_result"));
      },
  });
}

}  // namespace tenon

// Activations with more than one formula: those that pair channels with weights or halves, or give a buffer beside the result.
#include "tenon/ops/activation.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/convert.h"
#include "tenon/rules/infer.h"
#include "tenon/ops/random.h"
#include "tenon/rules/registry.h"
#include "tenon/ops/joining.h"
#include "tenon/ops/views.h"

namespace tenon {

Handle log_sigmoid;

static Handle prelu_kernel, prelu_backward, glu_backward, log_sigmoid_forward, log_sigmoid_backward;

namespace {

using loop::Expr;

// The size of either half of a dimension.
SymInt halved(const ArgsView& m, size_t self, size_t dim_arg, size_t& dim) {
  const TensorMeta& x = m.meta(self);
  m.require(x.rank() > 0, "expected a tensor with at least one dimension, got ", x);
  dim = m.dim(dim_arg, x.rank());
  SymInt size = x.sizes[dim];
  m.require(!size.is_int() || size.as_int() % 2 == 0, "expected an even size of dimension ", dim, ", got ", x);
  return sym::floor_div(size, 2);
}

}  // namespace

void register_activation_pairs(Registry& ops) {
  ops.add({
      .schema = "prelu(Tensor self, Tensor weight) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) {
        Tensor x = b["self"], w = b["weight"];
        b.require(x.dtype() == w.dtype(), "weight: expected a tensor of ", x.dtype(), " like self, got ", w.meta());
        b.require(w.rank() <= 1, "weight: expected at most one dimension, got ", w.meta());
        Sizes sizes(x.rank(), SymInt(1));
        if (x.rank() >= 2) {
          sizes[1] = w.numel();
          b.require(!sizes[1].is_int() || !x.size(1).is_int() || sizes[1] == SymInt(1) || sizes[1] == x.size(1), "weight: expected 1 or ",
                    x.size(1), " numbers, one per channel, got ", sizes[1]);
        }
        return prelu_kernel(x, w.sizes() == sizes ? w : Tensor(reshape(w, sizes)));
      },
  });
  ops.add(prelu_kernel, {
      .schema = "_prelu_kernel(Tensor self, Tensor weight) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr self, Expr weight) { return loop::select(self > 0.0, self, weight * self); },
      .vjp = {{"self, weight", [](Vjp& v) -> Grads {
        Results r = prelu_backward(v.grad(0), v["self"], v["weight"]);
        return {r[0], r[1]};
      }}},
  });
  ops.add(prelu_backward, {
      .schema = "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)",
      .meta = [](MetaCall& m) -> Metas {
        TensorMeta out = like(m.meta("self"), broadcast_sizes(m));
        const TensorMeta* operands[] = {&m.meta("self"), &m.meta("weight"), &m.meta("grad_output")};
        out.strides = pointwise_strides(out.sizes, operands);
        return {out, out};
      },
      .lower = [](Lower& l) {
        l.stage(Sizes(l.out().sizes()), [&](const Index& i) {
          Expr g = l["grad_output"].broadcast_at(i), x = l["self"].broadcast_at(i), w = l["weight"].broadcast_at(i), positive = x > 0.0;
          l.store(l.out(0), i, loop::select(positive, g, w * g));
          l.store(l.out(1), i, loop::select(positive, 0.0, x * g));
        });
      },
      .vjp = {{"grad_output, self, weight", [](Vjp& v) -> Grads {
        Tensor g = v["grad_output"], x = v["self"], w = v["weight"], first = v.grad(0), second = v.grad(1), positive = gt(x, 0.0);
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
      .schema = "glu(Tensor self, int dim=-1) -> Tensor",
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta& x = m.meta("self");
        m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x);
        size_t dim = 0;
        SymInt size = halved(m, 0, 1, dim);
        TensorMeta half = x;
        half.sizes[dim] = size;
        TensorMeta out = like(x, half.sizes);
        const TensorMeta* operand = &half;
        out.strides = pointwise_strides(out.sizes, std::span<const TensorMeta* const>(&operand, 1));
        return out;
      },
      .lower = [](Lower& l) {
        size_t dim = 0;
        SymInt half = halved(l, 0, 1, dim);
        l.tensor([&](const Index& i) { return l["self"].at(i) * loop::sigmoid(l["self"].at(i.with(dim, i[dim] + l.extent(half)))); });
      },
      .vjp = {{"self", [](Vjp& v) { return glu_backward(v.grad(), v["self"], v.arg("dim")); }}},
  });
  ops.add(glu_backward, {
      .schema = "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return like(m.meta("self"), m.meta("self").sizes); },
      .lower = [](Lower& l) {
        size_t dim = 0;
        SymInt half = halved(l, 1, 2, dim);
        l.stage(Sizes(l["grad_output"].sizes()), [&](const Index& i) {
          Index second = i.with(dim, i[dim] + l.extent(half));
          Expr g = l["grad_output"].at(i), a = l["self"].at(i), s = loop::sigmoid(l["self"].at(second));
          l.store(l.out(), i, s * g);
          l.store(l.out(), second, (1.0 - s) * s * g * a);
        });
      },
      .vjp = {{"grad_output, self, dim", [](Vjp& v) -> Grads {
        size_t dim = 0;
        SymInt half = halved(v, 1, 2, dim), whole = v["self"].size(static_cast<int64_t>(dim));
        auto first = [&](const Tensor& t) -> Tensor { return slice(t, dim, 0, half); };
        auto second = [&](const Tensor& t) -> Tensor { return slice(t, dim, half, whole); };
        Tensor g = v["grad_output"], a = first(v["self"]), s = sigmoid(second(v["self"])), slope = s * (1.0 - s), to_a = first(v.grad(0)), to_b = second(v.grad(0));
        Tensor in_a = to_b * g * slope, in_b = slope * g * (to_a + to_b * a * (1.0 - s * 2.0));
        return {s * to_a + slope * a * to_b, cat(std::vector<Tensor>{in_a, in_b}, dim)};
      }}},
  });

  ops.add(log_sigmoid, {
      .schema = "log_sigmoid(Tensor self) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results { return one(log_sigmoid_forward(b["self"])[0]); },
  });
  ops.add(log_sigmoid_forward, {
      .schema = "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)",
      .meta = [](MetaCall& m) -> Metas {
        const TensorMeta& x = m.meta("self");
        m.require(is_floating(x.dtype), "expected a floating point tensor, got ", x);
        return {like(x, x.sizes), like(x, x.sizes)};
      },
      .lower = [](Lower& l) {
        l.stage(Sizes(l["self"].sizes()), [&](const Index& i) {
          Expr x = l["self"].at(i), z = loop::exp(-loop::abs(x));
          l.store(l.out(0), i, min(x, 0.0) - loop::log1p(z));
          l.store(l.out(1), i, z);
        });
      },
      .vjp = {{"self", [](Vjp& v) { return log_sigmoid_backward(v.grad(), v["self"], v.out(1)); }}},
  });
  ops.add(log_sigmoid_backward, {
      .schema = "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor",
      .kind = OpKind::pointwise,
      .meta = floating_meta,
      .scalar = [](Expr grad, Expr self, Expr buffer) {
        Expr part = buffer / (1.0 + buffer);
        return grad * loop::select(self < 0.0, 1.0 - part, part);
      },
      .vjp = {{"grad_output, self, buffer", [](Vjp& v) -> Grads {
        Tensor g = v.grad(0), x = v["self"];
        if (!v.needs("self")) return {log_sigmoid_backward(g, x, v["buffer"])};
        Tensor y = sigmoid(x);
        return {v.needs("grad_output") ? Grad(log_sigmoid_backward(g, x, v["buffer"])) : Grad(), g * v["grad_output"] * (y - 1.0) * y};
      }}},
  });

  ops.add({
      .schema = "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) -> Results {
        double lower = b.number("lower"), upper = b.number("upper");
        if (!b.flag("training")) return leaky_relu(b["self"], (lower + upper) / 2);
        Tensor x = b["self"], slope = uniform_like(x) * (upper - lower) + lower;
        return mul(x, where(le(x, 0.0), slope, 1.0));
      },
  });
  ops.add({
      .schema = "rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, "
                "Generator? generator=None) -> (Tensor, Tensor noise_out)",
      .kind = OpKind::composite,
      .traits = {.random = true},
      .decompose = [](Build& b) -> Results {
        double lower = b.number("lower"), upper = b.number("upper");
        Tensor x = b["self"];
        b.require(b["noise"].sizes() == x.sizes(), "noise: expected the sizes of ", x.meta(), ", got ", b["noise"].meta());
        if (!b.flag("training")) return {{CallArg(Tensor(leaky_relu(x, (lower + upper) / 2))), CallArg(Tensor(clone(b["noise"])))}};
        Tensor noise = where(le(x, 0.0), uniform_like(x) * (upper - lower) + lower, 1.0);
        return {{CallArg(x * noise), CallArg(noise)}};
      },
  });
  ops.add({
      .schema = "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training, bool self_is_result) "
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

#include "tenon/ops/loss.h"

#include <limits>

#include "tenon/ops/activation.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/where.h"
#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/ops/reduce.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle nll_loss_forward, nll_loss2d_forward, mse_loss;
static Handle nll_loss_backward, nll_loss2d_backward, mse_loss_backward, smooth_l1_loss_backward, huber_loss_backward,
    bce_backward, soft_margin_loss_backward;

Tensor reduce_loss(const Tensor& loss, int64_t reduction, const ArgsView& call) {
  call.require(reduction >= 0 && reduction <= 2, "reduction: expected 0 (none), 1 (mean) or 2 (sum), got ", reduction);
  if (reduction == 0) return loss;
  return reduction == 1 ? mean_all(loss) : sum_all(loss);
}

namespace {

using loop::Compute;
using loop::Expr;
using Formula = Expr (*)(Lower&, std::span<const Expr>);

// The operands (arguments 0.. up to `operands`) of an elementwise loss, in their common dtype.
DType loss_dtype(const ArgsView& call, const char* operands) { return common_dtype(call, operands); }

TensorMeta elementwise_meta(const ArgsView& m, const char* operands) {
  std::vector<const TensorMeta*> metas;
  Sizes sizes;
  for (size_t i = 0; i < m.args.size(); ++i) {
    if (!is_among(m.op.schema.args[i].name, operands) || !m.is_tensor(i)) continue;
    metas.push_back(&m.meta(i));
    sizes = broadcast(sizes, m.meta(i).sizes, m);
  }
  DType dtype = loss_dtype(m, operands);
  m.require(is_floating(dtype), "expected floating point tensors, got ", *metas[0]);
  TensorMeta out = like(*metas[0], sizes, dtype);
  out.strides = pointwise_strides(sizes, metas);
  return out;
}

Metas loss_meta(const ArgsView& m, const char* operands, size_t reduction) {
  TensorMeta each = elementwise_meta(m, operands);
  int64_t kind = m.constant(reduction);
  m.require(kind >= 0 && kind <= 2, "reduction: expected 0 (none), 1 (mean) or 2 (sum), got ", kind);
  return kind == 0 ? each : like(each, {});
}

std::vector<Expr> operands_at(Lower& l, const char* operands, const Index& i, Compute type) {
  std::vector<Expr> values;
  for (size_t k = 0; k < l.args.size(); ++k)
    if (is_among(l.op.schema.args[k].name, operands)) values.push_back(l.is_tensor(k) ? cast(l[k].broadcast_at(i), type) : Expr());
  return values;
}

Sizes loss_sizes(const ArgsView& l, const char* operands) {
  Sizes sizes;
  for (size_t i = 0; i < l.args.size(); ++i)
    if (is_among(l.op.schema.args[i].name, operands) && l.is_tensor(i)) sizes = broadcast(sizes, l.meta(i).sizes, l);
  return sizes;
}

// The formula at each element, reduced in the same stage.
void lower_loss(Lower& l, const char* operands, size_t reduction, Formula formula) {
  Compute type = loop::compute_of(loss_dtype(l, operands));
  int64_t kind = l.constant(reduction);
  if (kind == 0) return l.tensor([&](const Index& i) { return formula(l, operands_at(l, operands, i, type)); });
  Sizes sizes = loss_sizes(l, operands);
  l.tensor([&](const Index&) {
    Expr total = l.sum(sizes, [&](const Index& r) { return formula(l, operands_at(l, operands, r, type)); });
    return kind == 1 ? total / cast(l.extent(count(sizes)), type) : total;
  });
}

// The formula gives the derivative at each element; the incoming gradient is argument 0, spread over the mean.
void lower_loss_gradient(Lower& l, const char* operands, size_t reduction, Formula formula) {
  Compute type = loop::compute_of(l.out().dtype());
  SymInt n = count(l.out().sizes());
  bool average = l.constant(reduction) == 1;
  l.tensor([&](const Index& i) {
    Expr g = cast(l[0].broadcast_at(i), type);
    if (average) g = g / cast(l.extent(n), type);
    return formula(l, operands_at(l, operands, i, type)) * g;
  });
}

Metas loss_gradient_meta(const ArgsView& m, const char* operands) {
  TensorMeta out = elementwise_meta(m, operands);
  out.strides = contiguous_strides(out.sizes);
  return out;
}

Expr smooth_l1(Lower& l, std::span<const Expr> x) {
  double beta = l.number(3);
  Expr z = loop::abs(x[0] - x[1]);
  if (beta == 0) return z;
  return loop::select(z < beta, z * z * 0.5 / beta, z - 0.5 * beta);
}
Expr smooth_l1_slope(Lower& l, std::span<const Expr> x) {
  double beta = l.number(4);
  Expr d = x[0] - x[1];
  Expr sign = call(loop::Fn::sign, d);
  if (beta == 0) return sign;
  return loop::select(loop::abs(d) >= beta, sign, d / beta);
}

Expr huber(Lower& l, std::span<const Expr> x) {
  double delta = l.number(3);
  Expr z = loop::abs(x[0] - x[1]);
  return loop::select(z <= delta, z * z * 0.5, (z - 0.5 * delta) * delta);
}
Expr huber_slope(Lower& l, std::span<const Expr> x) {
  double delta = l.number(4);
  Expr d = x[0] - x[1];
  return loop::select(loop::abs(d) >= delta, call(loop::Fn::sign, d) * delta, d);
}

// Logarithms are cut off at -100, so that the loss stays finite.
Expr cross_entropy(Lower& l, std::span<const Expr> x) {
  Expr low = l.constant(-100, x[0].type());
  Expr loss = (x[1] - 1.0) * loop::max(loop::log1p(-x[0]), low) - x[1] * loop::max(loop::log(x[0]), low);
  return x[2].arena ? loss * x[2] : loss;
}
Expr cross_entropy_slope(Lower& l, std::span<const Expr> x) {
  Expr slope = (x[0] - x[1]) / loop::max((Expr(1.0) - x[0]) * x[0], l.constant(1e-12, x[0].type()));
  return x[2].arena ? slope * x[2] : slope;
}

Expr logarithm_of_sigmoid(Lower& l, Expr x) {
  return loop::min(x, l.constant(0, x.type())) - loop::log1p(loop::exp(-loop::abs(x)));
}

// (1 - t) * x - (1 + (p - 1) * t) * log(sigmoid(x)), weighted.
Expr logit_cross_entropy(Lower& l, std::span<const Expr> x) {
  Expr part = logarithm_of_sigmoid(l, x[0]);
  if (x[3].arena) part = part * ((x[3] - 1.0) * x[1] + 1.0);
  Expr loss = (Expr(1.0) - x[1]) * x[0] - part;
  return x[2].arena ? loss * x[2] : loss;
}

Grads logit_cross_entropy_rule(Vjp& v) {
  Tensor g = v.grad(0), x = v[0], t = v[1], p = v[3];
  auto weighted = [&](Tensor slope) {
    slope = slope * g;
    if (v.given(2)) slope = slope * v[2];
    return v.constant(4) == 1 ? Tensor(div(slope, slope.numel())) : slope;
  };
  Grads out(2);
  if (v.needs(0)) {
    Tensor s = sigmoid(x);
    out[0] = p ? weighted((p * t + 1.0 - t) * s - p * t) : weighted(s - t);
  }
  if (v.needs(1)) {
    if (!p) out[1] = weighted(-x);
    else {
      Tensor negative = log_sigmoid(-x), positive = log_sigmoid(x);
      out[1] = weighted(negative - p * positive);
    }
  }
  return out;
}

// Both sides of a loss of the difference: the gradient for the target is the one with the sides exchanged.
Grads difference_rule(Vjp& v, const Handle& gradient, size_t reduction, int extra = -1) {
  auto side = [&](const Tensor& a, const Tensor& b) -> Grad {
    if (extra < 0) return gradient(v.grad(0), a, b, v.arg(reduction));
    return gradient(v.grad(0), a, b, v.arg(reduction), v.arg(static_cast<size_t>(extra)));
  };
  return {v.needs(0) ? side(v[0], v[1]) : Grad(), v.needs(1) ? side(v[1], v[0]) : Grad()};
}

// A gradient op's own gradient comes from its meaning in plain ops: the slope at each element times what arrives.
Results spread_slope(Build& b, size_t reduction, const Tensor& slope) {
  Tensor d = slope * b[0];
  return one(b.constant(reduction) == 1 ? Tensor(div(d, d.numel())) : d);
}

// Log probabilities [c], [n, c] or [n, c, ...] and the classes that are true.
struct Classes {
  size_t dim;  // where the classes are
  SymInt classes;
  SymInt ignored;
  Classes(const ArgsView& call, const Sizes& sizes, size_t ignore_index)
      : dim(sizes.size() == 1 ? 0 : 1), classes(sizes[dim]), ignored(call.integer(ignore_index)) {}
};

Metas class_loss_meta(MetaCall& m, bool pictures) {
  const TensorMeta &x = m.meta(0), &t = m.meta(1);
  m.require(is_floating(x.dtype), "expected floating point log probabilities, got ", x);
  m.require(pictures ? x.rank() == 4 : x.rank() == 1 || x.rank() == 2, "expected an input of ",
            pictures ? "4" : "1 or 2", " dimensions, got ", x);
  Classes classes(m, x.sizes, 4);
  Sizes sizes = x.sizes;
  sizes.erase(classes.dim);
  bool fits = t.rank() == sizes.size();
  for (size_t i = 0; fits && i < sizes.size(); ++i) fits = !statically_true(sym::ne(sizes[i], t.sizes[i]));
  // A single sample may have its class in a list of one.
  fits = fits || (x.rank() == 1 && t.rank() == 1 && !statically_true(sym::ne(t.sizes[0], 1)));
  m.require(fits, "target: expected sizes ", sizes, " beside an input ", x, ", got ", t);
  m.require(t.dtype == DType::i64 || t.dtype == DType::u8, "target: expected classes of dtype i64, got ", t);
  if (m.given(2))
    m.require(m.meta(2).rank() == 1 && !statically_true(sym::ne(m.meta(2).sizes[0], classes.classes)), "weight: expected ",
              classes.classes, " numbers, got ", m.meta(2));
  return {m.constant(3) == 0 ? like(x, sizes) : like(x, {}), like(x, {})};
}

// Where a class is ignored it may be out of range.
void lower_class_loss(Lower& l) {
  Ref x = l[0], target = l[1];
  Classes classes(l, x.sizes(), 4);
  Compute type = loop::compute_of(x.dtype());
  bool single = x.sizes().size() == 1;
  Sizes places = single ? Sizes{} : Sizes(target.sizes());
  auto truth = [&](const Index& i) { return target.at(single ? Index(target.sizes().size(), Expr(0)) : i); };
  auto counts = [&](Expr t) { return t != l.extent(classes.ignored); };
  auto weight = [&](const Index& i) {
    Expr t = truth(i), one = l.constant(1, type);
    if (l.given(2)) one = cast(l[2].at_if(counts(t), {t}, 0.0), type);
    return loop::select(counts(t), one, 0.0);
  };
  auto loss = [&](const Index& i) {
    Expr t = truth(i);
    Expr p = x.at_if(counts(t), single ? Index{t} : i.inserted(1, t), 0.0);
    return loop::select(counts(t), -p * weight(i), 0.0);
  };
  int64_t reduction = l.constant(3);
  if (reduction == 0) {
    l.tensor(l.out(0), loss);
    l.fill(l.out(1), l.constant(0, type));
    return;
  }
  l.stage({}, [&](const Index& i) {
    Expr total = l.sum(places, loss), weights = l.sum(places, weight);
    l.store(l.out(0), i, reduction == 1 ? total / weights : total);
    l.store(l.out(1), i, weights);
  });
}

void lower_class_loss_gradient(Lower& l) {
  Ref g = l[0], x = l[1], target = l[2];
  Classes classes(l, x.sizes(), 5);
  Compute type = loop::compute_of(x.dtype());
  bool single = x.sizes().size() == 1, each = l.constant(4) == 0, average = l.constant(4) == 1;
  l.tensor([&](const Index& i) {
    Index place = i.without(classes.dim);
    Expr t = target.at(single ? Index(target.sizes().size(), Expr(0)) : place), c = i[classes.dim];
    Expr d = cast(g.at(each ? (g.sizes().size() == place.size() ? place : Index(g.sizes().size(), Expr(0)))
                            : Index(g.sizes().size(), Expr(0))),
                  type);
    if (average) d = d / cast(l[6].at(Index(l[6].sizes().size(), Expr(0))), type);
    if (l.given(3)) d = d * cast(l[3].at({c}), type);
    return loop::select(t == c && t != l.extent(classes.ignored), -d, 0.0);
  });
}

Grads class_loss_rule(Vjp& v, const Handle& gradient) {
  if (!v.grad(0)) return {};
  return {gradient(v.grad(0), v[0], v[1], v.arg(2), v.arg(3), v.arg(4), v.out(1))};
}

}  // namespace

void register_loss(Registry& ops) {
  ops.add(nll_loss_forward, {
      .schema = "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, "
                "SymInt ignore_index) -> (Tensor output, Tensor "
                "total_weight)",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return class_loss_meta(m, false); },
      .lower = lower_class_loss,
      .vjp = {{"self, target, weight, reduction, ignore_index", [](Vjp& v) { return class_loss_rule(v, nll_loss_backward); }}},
  });
  ops.add(nll_loss2d_forward, {
      .schema = "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int "
                "reduction, SymInt ignore_index) -> (Tensor output, Tensor "
                "total_weight)",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return class_loss_meta(m, true); },
      .lower = lower_class_loss,
      .vjp = {{"self, target, weight, reduction, ignore_index", [](Vjp& v) { return class_loss_rule(v, nll_loss2d_backward); }}},
  });
  ops.add(nll_loss_backward, {
      .schema = "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? "
                "weight, int reduction, SymInt ignore_index, Tensor "
                "total_weight) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return like(m.meta("self"), m.meta("self").sizes); },
      .lower = lower_class_loss_gradient,
      .vjp = {{"grad_output", [](Vjp& v) { return nll_loss_forward(v.grad(), v["target"], v.arg("weight"), v.arg("reduction"), v.arg("ignore_index"))[0]; }}},
  });
  ops.add(nll_loss2d_backward, {
      .schema = "nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, "
                "Tensor? weight, int reduction, SymInt ignore_index, Tensor "
                "total_weight) -> Tensor",
      .meta = [](MetaCall& m) -> Metas { return like(m.meta("self"), m.meta("self").sizes); },
      .lower = lower_class_loss_gradient,
      .vjp = {{"grad_output", [](Vjp& v) { return nll_loss2d_forward(v.grad(), v["target"], v.arg("weight"), v.arg("reduction"), v.arg("ignore_index"))[0]; }}},
  });
  ops.add(mse_loss, {
      .schema = "mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return loss_meta(m, "self, target", 2); },
      .lower =
          [](Lower& l) {
            lower_loss(l, "self, target", 2, [](Lower&, std::span<const Expr> x) {
              Expr d = x[0] - x[1];
              return d * d;
            });
          },
      .vjp = {{"self, target, reduction", [](Vjp& v) { return difference_rule(v, mse_loss_backward, 2); }}},
  });
  ops.add(mse_loss_backward, {
      .schema = "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
      .meta = [](MetaCall& m) { return loss_gradient_meta(m, "self, target"); },
      .lower =
          [](Lower& l) {
            lower_loss_gradient(l, "self, target", 3,
                                [](Lower&, std::span<const Expr> x) { return (x[0] - x[1]) * 2.0; });
          },
      .for_grad = [](Build& b) { return spread_slope(b, 3, (b["self"] - b["target"]) * 2.0); },
  });
  ops.add({
      .schema = "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
      .kind = OpKind::reduction,
      .meta =
          [](MetaCall& m) {
            m.require(m.number("beta") >= 0, "beta: expected a number that is not negative, got ", m.number("beta"));
            return loss_meta(m, "self, target", 2);
          },
      .lower = [](Lower& l) { lower_loss(l, "self, target", 2, smooth_l1); },
      .vjp = {{"self, target, reduction, beta", [](Vjp& v) { return difference_rule(v, smooth_l1_loss_backward, 2, 3); }}},
  });
  ops.add(smooth_l1_loss_backward, {
      .schema = "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float "
                "beta) -> Tensor",
      .meta = [](MetaCall& m) { return loss_gradient_meta(m, "self, target"); },
      .lower = [](Lower& l) { lower_loss_gradient(l, "self, target", 3, smooth_l1_slope); },
      .for_grad =
          [](Build& b) {
            Tensor d = b["self"] - b["target"];
            double beta = b.number("beta");
            return spread_slope(
                b, 3, beta == 0 ? Tensor(sign(d)) : Tensor(where(ge(abs(d), beta), sign(d), d / beta)));
          },
  });
  ops.add({
      .schema = "huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
      .kind = OpKind::reduction,
      .meta =
          [](MetaCall& m) {
            m.require(m.number("delta") > 0, "delta: expected a positive number, got ", m.number("delta"));
            return loss_meta(m, "self, target", 2);
          },
      .lower = [](Lower& l) { lower_loss(l, "self, target", 2, huber); },
      .vjp = {{"self, target, reduction, delta", [](Vjp& v) { return difference_rule(v, huber_loss_backward, 2, 3); }}},
  });
  ops.add(huber_loss_backward, {
      .schema = "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int "
                "reduction, float delta) -> Tensor",
      .meta = [](MetaCall& m) { return loss_gradient_meta(m, "self, target"); },
      .lower = [](Lower& l) { lower_loss_gradient(l, "self, target", 3, huber_slope); },
      .for_grad =
          [](Build& b) {
            Tensor d = b["self"] - b["target"];
            return spread_slope(
                b, 3, where(ge(abs(d), b.number("delta")), Tensor(sign(d)) * b.number("delta"), d));
          },
  });
  ops.add({
      .schema = "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return loss_meta(m, "self, target, weight", 3); },
      .lower = [](Lower& l) { lower_loss(l, "self, target, weight", 3, cross_entropy); },
      .vjp = {{"self, target, weight, reduction", [](Vjp& v) -> Grads {
        Grads out(2);
        if (v.needs("self")) out[0] = bce_backward(v.grad(0), v["self"], v["target"], v.arg("weight"), v.arg("reduction"));
        if (v.needs("target")) {
          Tensor slope = (Tensor(log(1.0 - v["self"])) - Tensor(log(v["self"]))) * v.grad(0);
          if (v.given("weight")) slope = slope * v["weight"];
          out[1] = v.constant("reduction") == 1 ? Tensor(div(slope, slope.numel())) : slope;
        }
        return out;
      }}},
  });
  ops.add(bce_backward, {
      .schema = "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, "
                "Tensor? weight=None, int reduction=1) -> Tensor",
      .meta = [](MetaCall& m) { return loss_gradient_meta(m, "self, target, weight"); },
      .lower = [](Lower& l) { lower_loss_gradient(l, "self, target, weight", 4, cross_entropy_slope); },
      .for_grad =
          [](Build& b) {
            Tensor variance = (1.0 - b["self"]) * b["self"];
            Tensor slope = (b["self"] - b["target"]) / Tensor(where(gt(variance, 1e-12), variance, 1e-12));
            return spread_slope(b, 4, b.given("weight") ? slope * b["weight"] : slope);
          },
  });
  ops.add({
      .schema = "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
                "pos_weight=None, int reduction=1) -> "
                "Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return loss_meta(m, "self, target, weight, pos_weight", 4); },
      .lower = [](Lower& l) { lower_loss(l, "self, target, weight, pos_weight", 4, logit_cross_entropy); },
      .vjp = {{"self, target, weight, pos_weight, reduction", logit_cross_entropy_rule}},
  });
  ops.add({
      .schema = "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) -> Results {
        return one(reduce_loss(log1p(exp(-b["self"] * b["target"])), b.constant("reduction"), b));
      },
      .vjp = {{"self", [](Vjp& v) { return soft_margin_loss_backward(v.grad(), v["self"], v["target"], v.arg("reduction")); }}},
  });
  ops.add(soft_margin_loss_backward, {
      .schema =
          "soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
      .kind = OpKind::composite,
      .decompose =
          [](Build& b) {
            Tensor z = exp(-b["target"] * b["self"]);
            return spread_slope(b, 3, -b["target"] * z / (z + 1.0));
          },
  });
}

}  // namespace tenon

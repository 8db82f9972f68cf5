// Binary cross-entropy of probabilities and of logits.
#include "tenon/ops/activation.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/loss.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle binary_cross_entropy_with_logits;

static Handle binary_cross_entropy_backward;

namespace {

using loop::Expr;

constexpr const char* of_probabilities = "self, target, weight";
constexpr const char* of_logits = "self, target, weight, pos_weight";

// Logarithms are clamped at -100, so that the loss stays finite.
Expr cross_entropy(Lower& l, const LossOperands& at) {
  Expr p = at["self"], t = at["target"], weight = at["weight"], low = l.constant(-100, p.type());
  Expr loss = (t - 1.0) * loop::max(loop::log1p(-p), low) - t * loop::max(loop::log(p), low);
  return weight.arena ? loss * weight : loss;
}
Expr cross_entropy_slope(Lower& l, const LossOperands& at) {
  Expr p = at["self"], t = at["target"], weight = at["weight"];
  Expr slope = (p - t) / loop::max((Expr(1.0) - p) * p, l.constant(1e-12, p.type()));
  return weight.arena ? slope * weight : slope;
}

Expr log_sigmoid_of(Lower& l, Expr x) {
  return loop::min(x, l.constant(0, x.type())) - loop::log1p(loop::exp(-loop::abs(x)));
}

// (1 - t) * x - (1 + (p - 1) * t) * log(sigmoid(x)), weighted.
Expr logit_cross_entropy(Lower& l, const LossOperands& at) {
  Expr x = at["self"], t = at["target"], weight = at["weight"], p = at["pos_weight"];
  Expr part = log_sigmoid_of(l, x);
  if (p.arena) part = part * ((p - 1.0) * t + 1.0);
  Expr loss = (Expr(1.0) - t) * x - part;
  return weight.arena ? loss * weight : loss;
}

Tensor weighted(const Vjp& v, const Tensor& slope) {
  Tensor each = slope * v.grad();
  return spread_gradient(v.given("weight") ? each * v["weight"] : each, v);
}

}  // namespace

void register_loss_binary_cross_entropy(Registry& ops) {
  ops.add({
      .schema = "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor",
      .kind = OpKind::reduction,
      .meta = [](MetaCall& m) { return loss_meta(m, of_probabilities); },
      .lower = [](Lower& l) { lower_loss(l, of_probabilities, cross_entropy); },
      .vjp = {{"self",
               [](Vjp& v) {
                 return binary_cross_entropy_backward(v.grad(), v["self"], v["target"], v.arg("weight"),
                                                      v.arg("reduction"));
               }},
              {"target", [](Vjp& v) { return weighted(v, log(1.0 - v["self"]) - log(v["self"])); }}},
  });
  ops.add(
      binary_cross_entropy_backward,
      {
          .schema =
              "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int "
              "reduction=1) -> Tensor",
          .meta = [](MetaCall& m) { return loss_gradient_meta(m, of_probabilities); },
          .lower = [](Lower& l) { lower_loss_gradient(l, cross_entropy_slope); },
          .for_grad =
              [](Build& b) {
                Tensor variance = (1.0 - b["self"]) * b["self"];
                Tensor slope = (b["self"] - b["target"]) / where(gt(variance, 1e-12), variance, 1e-12);
                return loss_gradient(b, b.given("weight") ? slope * b["weight"] : slope);
              },
      });
  ops.add(binary_cross_entropy_with_logits,
          {
              .schema = "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
                        "pos_weight=None, int reduction=1) -> Tensor",
              .kind = OpKind::reduction,
              .meta = [](MetaCall& m) { return loss_meta(m, of_logits); },
              .lower = [](Lower& l) { lower_loss(l, of_logits, logit_cross_entropy); },
              .vjp = {{"self",
                       [](Vjp& v) {
                         Tensor t = v["target"], p = v["pos_weight"], s = sigmoid(v["self"]);
                         return weighted(v, p ? (p * t + 1.0 - t) * s - p * t : s - t);
                       }},
                      {"target",
                       [](Vjp& v) {
                         Tensor x = v["self"], p = v["pos_weight"];
                         if (!p) return weighted(v, -x);
                         Tensor negative = log_sigmoid(-x), positive = log_sigmoid(x);
                         return weighted(v, negative - p * positive);
                       }}},
          });
}

}  // namespace tenon

// Losses of the difference between two tensors. Their gradient for the target is the one with the sides exchanged.
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/comparison.h"
#include "tenon/ops/loss.h"
#include "tenon/ops/sign.h"
#include "tenon/ops/where.h"
#include "tenon/rules/registry.h"

namespace tenon {

Handle mse_loss;
static Handle mse_loss_backward, smooth_l1_loss_backward, huber_loss_backward;

namespace {

using loop::Expr;

constexpr const char* operands = "self, target";

Expr difference(const LossOperands& at) { return at["self"] - at["target"]; }

Expr squared_error(Lower&, const LossOperands& at) {
  Expr d = difference(at);
  return d * d;
}
Expr squared_error_slope(Lower&, const LossOperands& at) { return difference(at) * 2.0; }

Expr smooth_l1(Lower& l, const LossOperands& at) {
  double beta = l.number("beta");
  Expr z = loop::abs(difference(at));
  if (beta == 0) return z;
  return loop::select(z < beta, z * z * 0.5 / beta, z - 0.5 * beta);
}
Expr smooth_l1_slope(Lower& l, const LossOperands& at) {
  double beta = l.number("beta");
  Expr d = difference(at);
  Expr sign = call(loop::Fn::sign, d);
  if (beta == 0) return sign;
  return loop::select(loop::abs(d) >= beta, sign, d / beta);
}

Expr huber(Lower& l, const LossOperands& at) {
  double delta = l.number("delta");
  Expr z = loop::abs(difference(at));
  return loop::select(z <= delta, z * z * 0.5, (z - 0.5 * delta) * delta);
}
Expr huber_slope(Lower& l, const LossOperands& at) {
  double delta = l.number("delta");
  Expr d = difference(at);
  return loop::select(loop::abs(d) >= delta, call(loop::Fn::sign, d) * delta, d);
}

}  // namespace

void register_loss_regression(Registry& ops) {
  ops.add({
      .schema = "l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
      .kind = OpKind::composite,
      .decompose = [](Build& b) { return one(reduce_loss(abs(b["self"] - b["target"]), b)); },
  });
  ops.add(mse_loss,
          {
              .schema = "mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor",
              .kind = OpKind::reduction,
              .meta = [](MetaCall& m) { return loss_meta(m, operands); },
              .lower = [](Lower& l) { lower_loss(l, operands, squared_error); },
              .vjp = {{"self",
                       [](Vjp& v) { return mse_loss_backward(v.grad(), v["self"], v["target"], v.arg("reduction")); }},
                      {"target",
                       [](Vjp& v) { return mse_loss_backward(v.grad(), v["target"], v["self"], v.arg("reduction")); }}},
          });
  ops.add(mse_loss_backward,
          {
              .schema = "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor",
              .meta = [](MetaCall& m) { return loss_gradient_meta(m, operands); },
              .lower = [](Lower& l) { lower_loss_gradient(l, squared_error_slope); },
              .for_grad = [](Build& b) { return loss_gradient(b, (b["self"] - b["target"]) * 2.0); },
          });
  ops.add({
      .schema = "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.) -> Tensor",
      .kind = OpKind::reduction,
      .meta =
          [](MetaCall& m) {
            m.require(m.number("beta") >= 0, "beta: expected a number that is not negative, got ", m.number("beta"));
            return loss_meta(m, operands);
          },
      .lower = [](Lower& l) { lower_loss(l, operands, smooth_l1); },
      .vjp = {{"self",
               [](Vjp& v) {
                 return smooth_l1_loss_backward(v.grad(), v["self"], v["target"], v.arg("reduction"), v.arg("beta"));
               }},
              {"target",
               [](Vjp& v) {
                 return smooth_l1_loss_backward(v.grad(), v["target"], v["self"], v.arg("reduction"), v.arg("beta"));
               }}},
  });
  ops.add(
      smooth_l1_loss_backward,
      {
          .schema =
              "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> "
              "Tensor",
          .meta = [](MetaCall& m) { return loss_gradient_meta(m, operands); },
          .lower = [](Lower& l) { lower_loss_gradient(l, smooth_l1_slope); },
          .for_grad =
              [](Build& b) {
                Tensor d = b["self"] - b["target"];
                double beta = b.number("beta");
                return loss_gradient(b, beta == 0 ? sign(d) : where(ge(abs(d), beta), sign(d), d / beta));
              },
      });
  ops.add({
      .schema = "huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.) -> Tensor",
      .kind = OpKind::reduction,
      .meta =
          [](MetaCall& m) {
            m.require(m.number("delta") > 0, "delta: expected a positive number, got ", m.number("delta"));
            return loss_meta(m, operands);
          },
      .lower = [](Lower& l) { lower_loss(l, operands, huber); },
      .vjp = {{"self",
               [](Vjp& v) {
                 return huber_loss_backward(v.grad(), v["self"], v["target"], v.arg("reduction"), v.arg("delta"));
               }},
              {"target",
               [](Vjp& v) {
                 return huber_loss_backward(v.grad(), v["target"], v["self"], v.arg("reduction"), v.arg("delta"));
               }}},
  });
  ops.add(huber_loss_backward,
          {
              .schema =
                  "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> "
                  "Tensor",
              .meta = [](MetaCall& m) { return loss_gradient_meta(m, operands); },
              .lower = [](Lower& l) { lower_loss_gradient(l, huber_slope); },
              .for_grad =
                  [](Build& b) {
                    Tensor d = b["self"] - b["target"];
                    double delta = b.number("delta");
                    return loss_gradient(b, where(ge(abs(d), delta), sign(d) * delta, d));
                  },
          });
}

}  // namespace tenon

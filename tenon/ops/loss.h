// What losses share: how they are reduced, and elementwise losses, which are a formula at each place of broadcast
// operands. The argument `reduction` says 0 (each element), 1 (the mean) or 2 (the sum).
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle mse_loss, nll_loss_nd, cross_entropy_loss, binary_cross_entropy_with_logits;

int64_t reduction_of(const ArgsView& call);
Tensor reduce_loss(const Tensor& each, const ArgsView& call);
/// The gradient of a mean is spread over its elements.
Tensor spread_gradient(const Tensor& each, const ArgsView& call);

/// The operands of an elementwise loss at one place, in their common dtype; an absent one has no arena.
struct LossOperands {
  Lower& l;
  const Index& i;
  loop::Compute type;
  loop::Expr operator[](const char* arg) const;
};
using LossFormula = loop::Expr (*)(Lower&, const LossOperands&);

/// `operands` names the arguments that take part: "self, target, weight".
Metas loss_meta(const ArgsView& m, const char* operands);
void lower_loss(Lower& l, const char* operands, LossFormula loss);
/// For the gradient operator of a loss: `slope` is the derivative at each element, grad_output what arrives.
Metas loss_gradient_meta(const ArgsView& m, const char* operands);
void lower_loss_gradient(Lower& l, LossFormula slope);
/// The same over tensors, from which a gradient operator's own gradient comes.
Results loss_gradient(const Build& b, const Tensor& slope);

}  // namespace tenon

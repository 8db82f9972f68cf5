// Losses and their gradients.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

class Registry;

extern Handle nll_loss_forward, nll_loss2d_forward, nll_loss_nd, cross_entropy_loss, mse_loss;

/// What `reduction` says: 0 each element, 1 the mean, 2 the sum.
Tensor reduce_loss(const Tensor& loss, int64_t reduction, const ArgsView& call);

void register_loss_composite(Registry& ops);

}  // namespace tenon

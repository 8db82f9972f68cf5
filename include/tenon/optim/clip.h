// Gradients kept within bounds, before a step.
#pragma once
#include <tenon/tensor.h>

namespace tenon::TENON_INLINE v0::optim {

/// Scales the gradients of the parameters together so that their norm is at most max_norm, and gives the norm they had.
/// The norm is of the given order; infinity: the largest element.
TENON_PUBLIC double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2);
/// Cuts every element of the gradients to [-value, value].
TENON_PUBLIC void clip_grad_value_(const std::vector<Tensor>& parameters, double value);

}  // namespace tenon::TENON_INLINEv0::optim

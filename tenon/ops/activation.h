// Activation functions and their gradients: those of one formula in activation_smooth.cpp, those of several pieces in
// activation_piecewise.cpp.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle sigmoid, tanh, gelu, silu, softplus, log_sigmoid, sigmoid_backward, tanh_backward, gelu_backward,
    silu_backward;
extern Handle relu, hardtanh, leaky_relu, elu, threshold_backward, leaky_relu_backward;

}  // namespace tenon

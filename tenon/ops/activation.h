// Activation functions and their gradients.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle relu, sigmoid, tanh, gelu, silu, softplus, hardtanh, leaky_relu, elu, log_sigmoid, threshold_backward,
    sigmoid_backward, tanh_backward, gelu_backward, silu_backward, leaky_relu_backward;

}  // namespace tenon

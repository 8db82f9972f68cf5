// Convolutions and their gradient.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle convolution, convolution_backward;

}  // namespace tenon

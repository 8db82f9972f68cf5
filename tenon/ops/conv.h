// Convolutions and their gradient.
#pragma once
#include "tenon/ops/op_def.h"

namespace tenon {

extern Handle convolution, convolution_backward;

}  // namespace tenon

// Softmax, its logarithm, and their gradients.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle softmax, log_softmax, safe_softmax;

}  // namespace tenon

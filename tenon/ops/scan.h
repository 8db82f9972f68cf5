// Cumulative reductions along a dimension.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle cumsum, cumprod, logcumsumexp;

}  // namespace tenon

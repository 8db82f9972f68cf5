// Rounding to integers and to representable numbers.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle floor, ceil, trunc, round;

}  // namespace tenon

// Trigonometric and hyperbolic functions and their inverses; tanh is an activation.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, atan2;

}  // namespace tenon

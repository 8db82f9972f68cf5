// Limiting elements to a range.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle clamp, clamp_min, clamp_max;

}  // namespace tenon

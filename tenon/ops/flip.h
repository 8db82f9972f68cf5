// Elements in reverse, rolled and rotated.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle flip, roll;

}  // namespace tenon

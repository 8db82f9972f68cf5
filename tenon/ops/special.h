// Special functions of mathematics. They are computed by plain functions in double precision, one element at a time.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle polygamma, i0;

}  // namespace tenon

// Special functions of mathematics. Those without a formula of their own in loop:: are computed by plain functions in
// double precision, one element at a time.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle erf, erfc, erfinv, lgamma, digamma, polygamma, i0;

}  // namespace tenon

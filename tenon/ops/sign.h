// Signs and magnitudes.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle abs, sign, sgn, signbit;

}  // namespace tenon

// Padding: constant, reflected, replicated, circular.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle constant_pad_nd, pad;

}  // namespace tenon

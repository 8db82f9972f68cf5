// Tensors put together along a dimension.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle cat, stack;

}  // namespace tenon

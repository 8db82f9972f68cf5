// Numbers out of tensors.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle item;

}  // namespace tenon

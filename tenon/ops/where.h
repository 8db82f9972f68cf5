// Choosing by a mask, and overwriting elements by a value.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle where, fill, masked_fill, masked_fill_tensor;

}  // namespace tenon

// Dimensions renamed: narrowed, flattened, moved, broadcast.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle narrow, flatten, movedim, broadcast_tensors;

}  // namespace tenon

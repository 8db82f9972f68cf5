// Sliding windows, and the sums over them that undo them.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle unfold_backward;

}  // namespace tenon

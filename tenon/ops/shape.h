// Joining, repeating and reordering.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle cat, stack, flip, repeat, repeat_interleave_int, roll, broadcast_tensors, meshgrid, constant_pad_nd, narrow, flatten, movedim, diag_embed;

}  // namespace tenon

// Overwriting parts of a tensor by a value: filling, masks, triangles.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle fill, masked_fill, masked_fill_tensor, tril, triu, one_hot;

}  // namespace tenon

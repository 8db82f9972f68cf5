// A tensor taken apart along a dimension, by views.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle split_tensor, unsafe_split_tensor, split_with_sizes, unbind;

}  // namespace tenon

// Sums of products over named dimensions.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle einsum, tensordot;

}  // namespace tenon

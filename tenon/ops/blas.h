// Products of vectors and matrices, alone, added to something, or in batches.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle mm, bmm, addmm, matmul, linear;

}  // namespace tenon

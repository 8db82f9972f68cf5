// Triangles of matrices, and the indices of their elements.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle tril, triu;

}  // namespace tenon

// Distances between points and norms of matrices.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle cdist_forward, matrix_norm, named_matrix_norm;

}  // namespace tenon

// Norms of vectors and matrices.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle linalg_vector_norm, linalg_matrix_norm, linalg_matrix_norm_str;

}  // namespace tenon

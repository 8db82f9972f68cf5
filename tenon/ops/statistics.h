// Variances, norms and other reductions of more than one pass.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle var, var_mean, linalg_vector_norm, logsumexp, nansum;

}  // namespace tenon

// Variances, sums that leave out NaN, and other reductions of more than one pass.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle var, var_mean, logsumexp, nansum;

}  // namespace tenon

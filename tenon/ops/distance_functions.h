// Distances between vectors along one dimension.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle pairwise_distance;

}  // namespace tenon

// Distances between points.
#pragma once
#include "tenon/ops/op_def.h"

namespace tenon {

extern Handle cdist_forward;

}  // namespace tenon

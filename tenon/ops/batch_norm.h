// Batch and instance normalisation.
#pragma once
#include "tenon/ops/op_def.h"

namespace tenon {

extern Handle batch_norm;

}  // namespace tenon

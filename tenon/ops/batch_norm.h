// Batch and instance normalization.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle batch_norm;

}  // namespace tenon

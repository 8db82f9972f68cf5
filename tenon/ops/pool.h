// Pooling over windows of images.
#pragma once
#include "tenon/ops/op_def.h"

namespace tenon {

extern Handle max_pool2d_with_indices, max_pool3d_with_indices, avg_pool2d, adaptive_avg_pool2d;

}  // namespace tenon

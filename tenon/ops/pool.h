// Pooling over windows of images.
#pragma once
#include "tenon/ops/op_def.h"

namespace tenon {

/// Picks from a tensor what the indices of a max pool name in its last `space` dims: the gradient of unpooling.
Tensor picked(const Tensor& x, const Tensor& indices, size_t space);

extern Handle max_pool2d_with_indices, max_pool3d_with_indices, avg_pool2d, adaptive_avg_pool2d;

}  // namespace tenon

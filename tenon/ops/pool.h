// Pooling over windows of images.
#pragma once
#include <functional>

#include "tenon/rules/op_def.h"

namespace tenon {

/// Picks from a tensor what the indices of a max pool name in its last `space` dims: the gradient of unpooling.
Tensor picked(const Tensor& x, const Tensor& indices, size_t space);

/// An element of a window: where in the image, and whether that is inside.
struct PoolElement {
  Index at;
  loop::Expr inside;
};
/// The largest element of each window and, where there is a second result, its place in the plane. Of several NaN the
/// last one counts. `element(i, r)` is element r of the window of result i; no window is larger than `extents`.
void lower_largest(Lower& l, Ref x, size_t space, const Sizes& extents,
                   const std::function<PoolElement(const Index&, const Index&)>& element);
/// Puts each element of argument 0 at the place in its plane that its index names.
void lower_unpool(Lower& l, Ref indices, size_t space, loop::Mode mode = loop::Mode::add);

extern Handle max_pool2d_with_indices, max_pool3d_with_indices, avg_pool2d, adaptive_avg_pool2d;

}  // namespace tenon

// Pooling over windows of images. `space` is the number of dimensions, the last ones, that a window spans.
#pragma once
#include <functional>

#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle max_pool2d_with_indices, avg_pool2d, adaptive_avg_pool2d;

/// An image or a batch of images: `space` dimensions after the channels. Returns the first dimension of space.
size_t require_image(const ArgsView& call, const TensorMeta& x, size_t space);
/// The gradient of a pool: as many dimensions as the input, which must be an image, and its sizes before those of
/// space.
void require_pool_gradient(const ArgsView& call, const TensorMeta& grad, const TensorMeta& input, size_t space);
/// The indices of a max pool whose result has these sizes.
void require_pool_indices(const ArgsView& call, const Sizes& pooled);

/// Where the windows of a pool lie, as the arguments of a call say: kernel_size, stride, padding, ceil_mode and, where
/// there is one, dilation.
struct Windows {
  size_t space = 0;
  Sizes kernel, stride, padding, dilation;
  bool ceil = false;
  Windows(const ArgsView& call, size_t space);
};
Sizes pooled_sizes(const ArgsView& call, const TensorMeta& x, const Windows& windows);

/// An element of a window: where in the image, and whether that is inside.
struct PoolElement {
  Index at;
  loop::Expr inside;
  bool always = false;  // inside
};
/// The largest element of each window and, where there is a second result, its place in the plane. Of several NaN the
/// last one counts. `element(i, r)` is element r of the window of result i; no window is larger than `extents`.
void lower_max_pool(Lower& l, Ref x, size_t space, const Sizes& extents,
                    const std::function<PoolElement(const Index&, const Index&)>& element);
/// Puts each element of `values` at the place in its plane of the result that its index names.
void lower_max_unpool(Lower& l, Ref values, size_t space, loop::Mode mode = loop::Mode::add);
/// What the indices of a max pool name in the last `space` dimensions of x: the gradient of unpooling.
Tensor gather_pooled(const Tensor& x, const Tensor& indices, size_t space);

/// The first `results` of a pool of one dimension, as a pool of images of one row.
Results pool_one_row(const Tensor& x, size_t results, const std::function<Results(const Tensor&)>& pool2d);

}  // namespace tenon

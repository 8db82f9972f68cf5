// Parameters of convolutions over three spatial dimensions (fewer: sizes of 1) for f32 and f64, and of their gradients.
//
// One sum serves both directions: a result's element adds, over taps and inner channels, source times weight. Forward:
// from x to y. Gradient: from y to x, which is also what a transposed convolution does; results fall into phases modulo
// the stride, each with the taps that reach it. The source has its channels side by side and all the places that taps
// reach: convolution_stage_T makes such a copy with zeros around. Sums run tap by tap, channels innermost, in chunks of
// at most 768 terms; results depend neither on the target nor on how the caller cuts the iterations.
#pragma once
#include <stdint.h>

#include "kernels/gemm.h"

namespace tenon::kernels {

/// What taps a convolution has. Strides, padding and dilation are the untransposed convolution's.
struct ConvolutionTaps {
  int64_t gradient;  // 1: from y to x
  int64_t kernel[3], stride[3], padding[3], dilation[3];
};

/// convolution_stage_T: buffers `from` and `to`. `to` is contiguous [batch, span..., channels], or planar [batch,
/// channels, span...]; place i of a dimension is place lo + i of the source, zero outside of it. Iterations: batch *
/// span[0] * span[1], planar times channels.
struct ConvolutionStageParams {
  int64_t batch, channels, planar;
  int64_t size[3], lo[3], span[3];
  int64_t from, from_batch, from_channel, from_stride[3];
  int64_t to;
};

/// convolution_pack_T: buffers `from` and `to`. Weights into panels of 16 channels of the result, by phases:
/// [phase][group][panel][tap][inner][16]. Iterations: groups * panels.
/// convolution_depthwise_pack_T: [panel][tap][16] over the groups; taps in order, whatever the direction. Where groups
/// are no multiple of 16, the last panel holds the last 16 of them. columns and inner are 1. Iterations: panels of
/// groups.
struct ConvolutionPackParams {
  ConvolutionTaps taps;
  int64_t groups, columns, inner;  // columns: channels of the result in a group
  int64_t from, from_group, from_column, from_inner, from_stride[3];
  int64_t to;
};

/// Buffers: source, packed weights, out, then bias and residual where flagged (gemm.h), as gemm's.
/// convolution_T: Iterations: phases * groups * blocks of gemm_columns(points, columns, terms) *
/// gemm_row_blocks(points), both of the first phase; a phase has batch times ceil((size - phase) / stride) points, and
/// there are stride[0] * stride[1] * stride[2] of them, forward one. Scratch: gemm_scratch elements.
/// convolution_depthwise_T: columns and inner are 1; taps outside of [lo, hi) of the source are left out, so that it
/// needs no copy for its padding. Iterations: channel_blocks * batch * size[0] * size[1], rows of one block of channels
/// after the other; where there are several, each has at least two panels. No scratch.
struct ConvolutionParams {
  ConvolutionTaps taps;
  int64_t batch, groups, columns, inner, flags;
  int64_t size[3];                                 // of the result
  int64_t source, source_batch, source_stride[3];  // source: place 0 of each dimension
  int64_t lo[3], hi[3];                            // places of the source that are there
  int64_t weights;
  int64_t out, out_batch, out_channel, out_stride[3];
  int64_t bias, bias_step;
  int64_t residual, residual_batch, residual_channel, residual_stride[3];
  int64_t channel_blocks;  // of a depthwise convolution
};

/// convolution_points_T: buffers `from` and `to`. The gradient of y into panels of 16 channels, [group][panel][batch *
/// places][16]. Iterations: groups * panels * batch * size[0] * size[1].
struct ConvolutionPointsParams {
  int64_t batch, groups, columns;
  int64_t size[3];
  int64_t from, from_batch, from_channel, from_stride[3];
  int64_t to;
};

/// convolution_weight_T: buffers x (as a source, but its channels may have a stride), what convolution_points_T wrote,
/// and the gradient of the weights.
/// Iterations: groups * blocks of 192 columns * gemm_row_blocks(taps * inner); more do nothing. Scratch:
/// convolution_weight_scratch elements. convolution_depthwise_weight_T: columns and inner are 1, points are of one
/// group with `groups` columns. Iterations: panels * kernel[0] * kernel[1]. No scratch.
struct ConvolutionWeightParams {
  ConvolutionTaps taps;
  int64_t batch, groups, columns, inner;
  int64_t size[3];  // of y
  int64_t source, source_batch, source_channel, source_stride[3];
  int64_t points;
  int64_t out, out_group, out_column, out_inner, out_stride[3];
};
constexpr int64_t convolution_weight_scratch = gemm_block_rows * gemm_block_columns + 96 * 768;

}  // namespace tenon::kernels

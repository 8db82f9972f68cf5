// Operands in the kernel library's own layout: panels of 16 columns, [panel][k][16], so that sums read them straight
// through. A right side that is used more than once (weights) is packed by a step of its own.
#pragma once
#include "tenon/loop/program.h"

namespace tenon::loop {

constexpr int64_t panel_width = 16;

/// Where a column of a panel lies: in order but for bf16, whose columns are 0 to 3, 8 to 11, 4 to 7, 12 to 15, as the
/// kernels widen them.
Expr panel_slot(DType dtype, Expr column);

/// The step that packs the right side of a gemm, or the weights of a convolution (forward or input_gradient), into
/// `to`. A right side that all matrices of a batch share (its stride is 0) is packed once.
Pack pack_of(const Gemm& gemm, BufferId to);
Pack pack_of(const Convolution& convolution, BufferId to);

/// Sizes of the contiguous buffer it writes. Its dtype is the result's; for a gemm in f32 it may be
/// f16 or bf16.
Sizes packed_sizes(const Pack& pack);

/// The same step on a buffer packed by pack_of(step, to).
Gemm with_packed(Gemm gemm, BufferId packed);
Convolution with_packed(Convolution convolution, BufferId packed);

/// Its stride, cut where no second step is taken: sums are laid out by it, and a step never taken may be of any size.
Sizes taken_stride(const Convolution& convolution);

/// One input and one output channel to every group.
bool is_depthwise(const Convolution& convolution);

}  // namespace tenon::loop

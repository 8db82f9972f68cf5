// What is known of a tensor without its data. Sizes, strides and offset are integers or symbolic expressions
// throughout.
#pragma once
#include <span>

#include "tenon/base/small_vector.h"
#include "tenon/sym/expr.h"
#include "tenon/sym/print.h"
#include "tenon/tensor/dtype.h"

namespace tenon {

using Sizes = SmallVector<SymInt, 6>;

struct TensorMeta {
  DType dtype = DType::f32;
  Sizes sizes;
  Sizes strides;
  SymInt offset = 0;
  Device device;
  Layout layout = Layout::strided;
  bool requires_grad = false;
  bool wrapped_number = false;  // a 0-d tensor that stands for a Python number: it yields in promotion

  size_t rank() const { return sizes.size(); }
  bool operator==(const TensorMeta&) const = default;
};

/// Strides of a dense tensor in row-major order; a size of 0 counts as 1, as in PyTorch.
Sizes contiguous_strides(const Sizes& sizes);
/// Dense strides in the order of a memory format (channels_last needs rank 4, channels_last_3d rank 5).
Sizes strides_in(MemoryFormat format, const Sizes& sizes);
SymInt count(const Sizes& sizes);  // number of elements
/// True only where it can be shown: with symbolic sizes, equal expressions.
bool is_contiguous(const TensorMeta& meta, MemoryFormat format = MemoryFormat::contiguous);
/// Every element has its own place and no gaps: the strides are a permutation of dense ones.
bool is_dense(const TensorMeta& meta);
TensorMeta make_meta(DType dtype, Sizes sizes, Device device = {});  // contiguous
/// A dimension given as -rank..rank-1, checked and made non-negative. A scalar counts as rank 1.
size_t normal_dim(int64_t dim, size_t rank, std::string_view what = "dimension");

/// f32[2, s77], with the strides in a second bracket where they are not contiguous.
void append_text(std::string& out, const TensorMeta& meta);

}  // namespace tenon

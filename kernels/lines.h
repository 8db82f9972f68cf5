// Tensors as lines along one dimension, numbered by the position of the other dimensions, last fastest.
#pragma once
#include "kernels/kernel.h"

namespace tenon::kernels {

struct Lines {
  int64_t rank;
  const int64_t* sizes;  // of the dimensions across the lines

  /// Where line `line` of a tensor with these strides across begins, beyond its offset.
  int64_t begin(int64_t line, const int64_t* strides) const {
    int64_t at = 0;
    for (int64_t d = rank; d-- > 1;) {
      int64_t rest = line / sizes[d];
      at += (line - rest * sizes[d]) * strides[d];
      line = rest;
    }
    return rank > 0 ? at + line * strides[0] : at;
  }
  const int64_t* strides(int64_t tensor) const { return sizes + rank * (1 + tensor); }
};

}  // namespace tenon::kernels

// Reading and writing at places that tensors name.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle embedding, index_tensor, index_put, index_select, index_add, index_fill, gather, scatter_src,
    scatter_value, scatter_add, scatter_reduce, take, put, nonzero, nonzero_static, masked_scatter, item;

/// Argument `at` must hold indices.
void require_index(const MetaCall& m, size_t at);
/// Argument 1 as a dimension of argument 0; a scalar counts as a tensor of one element.
size_t dim_of(const ArgsView& call);
/// An index that may count from the end, as one that does not.
loop::Expr wrapped(Lower& l, loop::Expr index, SymInt size);
/// The row-major number of each true element among the true ones, minus one where it is false: positions[i] for i of
/// mask's sizes.
Ref mask_positions(Lower& l, Ref mask);

/// A result that stages add to: the result itself, or a wider buffer where its dtype is narrow. finish() copies it
/// back.
struct WideResult {
  WideResult(Lower& l, Ref out);
  void finish();
  Lower& l;
  Ref out, target;
};

}  // namespace tenon

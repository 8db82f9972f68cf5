// Indexing by tensors, x[i, j] and its assignment, and what the rules of ops that take indices share.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle index_tensor, index_put;

/// Indices must be i64 or i32; an empty tensor of any dtype holds none.
void require_index(const ArgsView& call, const TensorMeta& index);
/// An index that may count from the end, as one that does not.
loop::Expr wrapped(Lower& l, loop::Expr index, SymInt size);
/// The index of element number `flat` of a tensor of these sizes in row-major order.
Index unravelled(Lower& l, loop::Expr flat, const Sizes& sizes);

}  // namespace tenon

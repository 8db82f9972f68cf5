// Views: ops that are an index map and nothing else.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle view, reshape, permute, transpose, expand, slice, select, unsqueeze, squeeze_dim, as_strided, unfold,
    alias, detach, view_dtype, unsafe_view;

/// Sizes with one -1 filled in.
Sizes inferred_sizes(const Sizes& sizes, SymInt count, const ArgsView& call);
/// The map of a view that takes one index along a dimension, which goes.
IndexMap selection(const TensorMeta& base, size_t dim, SymInt index);

}  // namespace tenon

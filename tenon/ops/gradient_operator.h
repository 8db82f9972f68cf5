// What operators that compute gradients share.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

/// An operand must have these sizes, as far as they are known.
void require_sizes(const ArgsView& call, const char* arg, const Sizes& sizes);

/// The results of which some are asked for: one meta per flag of the argument output_mask; none where the flag is
/// false.
Metas masked_metas(const ArgsView& call, std::initializer_list<TensorMeta> metas);

}  // namespace tenon

// What the file says of a value, against the value that stands for it once regions, batches and wrapped calls are
// written out: everything behind it relies on what the file says.
#pragma once
#include <string_view>

#include "tenon/graph/graph.h"

namespace tenon {

/// Refuses a value that is described as what the one standing for it is not. `what` is how a message calls it.
void require_stands_for(const Node& node, std::string_view what, const ValueInfo& said, const ValueInfo& is);

/// One sample of a tensor that is split along a dimension.
ValueInfo sample_of(const Node& node, const ValueInfo& batch, SymInt dim);
/// The samples as a tensor again, one after the other along a first dimension.
ValueInfo batch_of(const ValueInfo& sample, SymInt count);

}  // namespace tenon

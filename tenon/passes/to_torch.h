// Our own operators in PyTorch's words.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// Replaces every operator that PyTorch does not have by the ones its block spells it with. One that has no spelling is
/// an Error that names it.
Graph to_torch(const GraphBody& graph);

}  // namespace tenon

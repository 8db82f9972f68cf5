// A functional graph in PyTorch's words.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// Replaces every operator by the ones its block spells it with, if any: those that PyTorch does not have, and views
/// that would fail on inputs of another layout. One of our own that has no spelling is an Error that names it.
Graph to_torch(const GraphBody& graph);

}  // namespace tenon

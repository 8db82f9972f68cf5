// Names of symbols that a graph already has.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// Fresh symbols of `shapes` get names that no size or number of the graph has, nor of a graph within it: ranges do not
/// list them all.
void reserve_names(const GraphBody& graph, sym::ShapeEnv& shapes);

}  // namespace tenon

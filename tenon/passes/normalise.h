// From a graph as written to what the compiler works on.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// Grad regions become the grad_enabled flag of nodes, symbolic nodes become expressions, numbers the graph computes
/// from sizes stand in the arguments that use them. Autocast regions and control flow are refused by name: they come
/// later.
Graph normalise(const GraphBody& graph);

}  // namespace tenon

// From a graph as written to what the compiler works on.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// Grad regions become the grad_enabled flag of nodes, symbolic nodes become expressions, numbers the graph computes
/// from sizes stand in the arguments that use them, the conversions of autocast regions are written out. Control flow
/// is refused by name: it comes later.
Graph normalize(const GraphBody& graph);

}  // namespace tenon

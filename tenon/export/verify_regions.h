// Part of verify(): nodes that hold graphs.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// Regions and control flow: graphs where graphs must be, as many operands as they have inputs, of the same kinds, and
/// results as the graphs give them. An Error names the node. Nothing for other nodes.
void verify_region(const Node& node, const GraphBody& graph);

}  // namespace tenon

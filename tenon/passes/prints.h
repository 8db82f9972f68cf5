// Calls that print, as the exporter has them.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// Appends to `graph` what a call prints, as a print of tensors alone: constants become text, numbers that only a run
/// tells tensors without dimensions, which print alike. The node's tensors are values of `graph`.
void trace_print(GraphBody& graph, const Node& node);

/// The same call for files: of such a node.
Node print_for_files(const Node& node);

}  // namespace tenon

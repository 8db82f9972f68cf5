// Calls of operators that the exporter wraps: with_effects, which hands a token from one call to the next, and
// auto_functionalized, which has an operator write to copies. Both become the plain call again: nodes are executed in
// their order, and writes are made pure by functionalize.
#pragma once
#include <optional>

#include "tenon/graph/graph.h"

namespace tenon {

bool is_wrapped_call(const Op& op);
/// The name of the operator that such a node calls, where Tenon does not have it.
std::optional<std::string> missing_operator(const Node& node);
/// Adds what a wrapped call means to a graph. The node's arguments are in terms of that graph; gives what stands for
/// its results.
Args unwrap_call(GraphBody& graph, const Node& node);

}  // namespace tenon

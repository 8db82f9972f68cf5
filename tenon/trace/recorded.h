// Nodes that are called again: what was recorded of their results, and where the new ones go.
#pragma once
#include "tenon/graph/graph.h"
#include "tenon/rules/op_def.h"

namespace tenon {

/// What a graph says of the results of one of its nodes: metas of tensors, expressions of numbers, nothing where a
/// result is left out.
std::vector<BasicArg<TensorMeta>> recorded_metas(const GraphBody& graph, const Node& node);
/// Puts what a call of the node gave where the values of its results are.
void keep_results(const Node& node, const CallResults& results, std::vector<CallArg>& values);

}  // namespace tenon

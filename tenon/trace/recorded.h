// Nodes that are called again: what was recorded of their results, and where the new ones go.
#pragma once
#include "tenon/graph/graph.h"
#include "tenon/rules/op_def.h"

namespace tenon {

/// What a graph says of the results of one of its nodes: metas of tensors, expressions of numbers, nothing where a
/// result is left out.
std::vector<BasicArg<TensorMeta>> recorded_metas(const GraphBody& graph, const Node& node);
/// A view made in place (t_, squeeze_) gives its tensor other sizes. Where that is used by its old name, what comes of
/// it was described, and checked, for the old sizes: an Error, unless the node gives the same for those that `args`
/// have.
void require_as_said(const Node& node, const GraphBody& from, const std::vector<CallArg>& values, const CallArgs& args);
/// Puts what a call of the node gave where the values of its results are.
void keep_results(const Node& node, const CallResults& results, std::vector<CallArg>& values);

}  // namespace tenon

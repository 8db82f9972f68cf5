// Reverse mode over graphs.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// Replays a functional graph so that every node through which gradients flow from the given inputs has a gradient
/// rule: composites are replaced by ops that have one, or by their meaning. An op without a gradient is an Error that
/// names it. `differentiable[i]` says whether gradients with respect to graph.inputs[i] are wanted.
/// Where values are given, gradients are of these, and what they do not depend on stays as it is.
Graph prepare_for_gradients(const GraphBody& graph, const std::vector<bool>& differentiable,
                            const std::vector<Value>& of = {});

/// Appends the backward of a prepared graph: the gradients of `outputs`, weighted by `cotangents`, with respect to
/// `inputs`. An entry without a value: nothing reaches that input. Walks backwards once; accumulates, never makes
/// zeros.
std::vector<Value> append_backward(GraphBody& graph, const std::vector<Value>& outputs,
                                   const std::vector<Value>& cotangents, const std::vector<Value>& inputs);

}  // namespace tenon

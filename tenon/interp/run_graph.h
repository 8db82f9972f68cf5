// Runs a graph node by node.
#pragma once
#include "tenon/graph/graph.h"
#include "tenon/sym/evaluate.h"
#include "tenon/tensor/dispatch.h"

namespace tenon::interp {

struct GraphRun {
  /// Nobody observes aliasing between the graph's values: a reshape that is no view copies.
  bool functional = true;
  /// Who executes the calls; null: the interpreter.
  Dispatcher* calls = nullptr;
};

/// `inputs` answer to graph.inputs one by one; a tensor that is none is ones, made when its size is known. Symbols are
/// bound from the sizes of inputs and from nodes that produce numbers; an input whose size does not fit what is already
/// known is an Error naming it. Values are freed after their last use.
std::vector<CallArg> run_graph(const GraphBody& graph, std::span<const CallArg> inputs, const GraphRun& options = {});

/// Solves the sizes of tensors for the graph's symbols; tensors that are none tell nothing. `names` are what errors
/// call the inputs.
sym::Bindings bind_symbols(const GraphBody& graph, std::span<const CallArg> inputs, std::span<const std::string> names);

}  // namespace tenon::interp

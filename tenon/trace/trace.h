// Builds a graph by running code: every operator called becomes a node. Rules, decompositions and gradients are traced
// this way.
#pragma once
#include "tenon/graph/graph.h"
#include "tenon/rules/op_def.h"

namespace tenon {

/// Appends a node for each call to a graph. Real tensors it meets become constants of the graph where they are numbers.
class Tracer : public Dispatcher {
 public:
  explicit Tracer(GraphBody& graph) : graph_(graph) {}
  CallResults run(const Op& op, CallArgs args) override;
  /// Appends a call whose results are known to have these metas: its rule is not asked.
  CallResults append(const Op& op, CallArgs args, std::vector<BasicArg<TensorMeta>> metas);

  /// A value of the graph as a tensor that rules can use.
  Tensor tensor(Value v) const;
  /// The value behind a tensor of this graph; a real number becomes a node that makes it.
  Value value(const Tensor& t);
  Arg arg(const CallArg& arg);             // over values
  CallArg call_arg(const Arg& arg) const;  // over tensors
  GraphBody& graph() { return graph_; }

  Phase phase = Phase::forward;  // marks the nodes that are appended
  NodeMetadata metadata;         // theirs, too

 private:
  CallResults add(const Op& op, const CallArgs& args, const std::vector<BasicArg<TensorMeta>>& metas);

  GraphBody& graph_;
};

/// The metas of a call's results: by the op's rule, by its kind, or by tracing a composite's meaning.
Metas infer_any(const Op& op, std::span<const CallArg> args);

}  // namespace tenon

#include "tenon/passes/to_torch.h"

#include "tenon/ops/custom_ops.h"
#include "tenon/ops/printing.h"
#include "tenon/ops/structural.h"
#include "tenon/passes/prints.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/trace/retrace.h"

namespace tenon {
namespace {

bool is_ours(const Op& op) { return op.schema.space() == "tenon"; }

bool is_respelled(const Op& op) { return is_ours(op) || (op.def && op.def->to_torch && !op.functional); }

class Spelling : public Dispatcher {
 public:
  explicit Spelling(GraphBody& graph) : tracer(graph) {}
  Tracer tracer;
  CallResults run(const Op& op, CallArgs args) override {
    if (!is_respelled(op)) return tracer.call(op, std::move(args));
    require(op.def->to_torch != nullptr, "the operator ", op.name(),
            " has no form that PyTorch knows, so the program cannot be written");
    DispatchScope scope(this);
    Build build(op, args);
    return op.def->to_torch(build).values;
  }
};

// PyTorch has only the operator that writes: it is called on copies.
Node functionalized_call(const Node& node, const Op& writing) {
  Node out = node;
  out.op = &functionalized.op();
  out.args = {OperatorName{writing.target}};
  out.args.insert(out.args.end(), node.args.begin(), node.args.end());
  for (const SchemaArg& arg : writing.schema.args) out.origin.keywords.push_back(arg.name);
  if (writing.schema.returns.empty()) out.results.insert(out.results.begin(), Arg());
  out.origin.hop_single_return = 0;
  return out;
}

}  // namespace

Graph to_torch(const GraphBody& from) {
  Replay replay(from);
  Spelling spelling(replay.graph.body());
  ShapesScope shapes(&from.shapes);
  replay.inputs();
  for (const Node& node : from.nodes) {
    if (node.op == &print_values.op()) {
      replay.node(print_for_files(node));
      continue;
    }
    if (is_respelled(*node.op)) {
      retrace(node, replay, spelling.tracer, spelling);
      continue;
    }
    const Op* writing = writing_form(*node.op);
    NodeId id = replay.node(writing ? functionalized_call(node, *writing) : node);
    for (Arg& arg : replay.graph->nodes[id].args)
      if (auto* within = arg.get<Subgraph>())
        arg = Subgraph{within->name, std::shared_ptr<const GraphBody>(to_torch(*within->body).release())};
  }
  replay.outputs();
  return remove_dead_code(std::move(replay.graph));
}

}  // namespace tenon

#include "tenon/passes/to_torch.h"

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

}  // namespace

Graph to_torch(const GraphBody& from) {
  Replay replay(from);
  Spelling spelling(replay.graph.body());
  ShapesScope shapes(&from.shapes);
  replay.inputs();
  for (const Node& node : from.nodes) {
    if (is_respelled(*node.op)) {
      retrace(node, replay, spelling.tracer, spelling);
      continue;
    }
    NodeId id = replay.node(node);
    for (Arg& arg : replay.graph->nodes[id].args)
      if (auto* within = arg.get<Subgraph>())
        arg = Subgraph{within->name, std::shared_ptr<const GraphBody>(to_torch(*within->body).release())};
  }
  replay.outputs();
  return remove_dead_code(std::move(replay.graph));
}

}  // namespace tenon

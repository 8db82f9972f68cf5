#include "tenon/passes/decompose.h"

#include "tenon/rules/symbolic_shapes.h"
#include "tenon/trace/retrace.h"

namespace tenon {
namespace {

bool stands_for_others(const Op& op) {
  return op.def && op.def->decompose && !op.def->lower && !op.def->scalar && !op.def->view && !op.def->host;
}

class Expander : public Dispatcher {
 public:
  explicit Expander(GraphBody& graph) : tracer(graph) {}
  Tracer tracer;
  CallResults run(const Op& op, CallArgs args) override {
    if (!stands_for_others(op)) return tracer.call(op, std::move(args));
    DispatchScope scope(this);
    Build build(op, args);
    return op.def->decompose(build).values;
  }
};

}  // namespace

Graph decompose(const GraphBody& from) {
  Replay replay(from);
  Expander expander(replay.graph.body());
  ShapesScope shapes(&from.shapes);
  replay.inputs();
  for (const Node& node : from.nodes) {
    if (stands_for_others(*node.op)) {
      retrace(node, replay, expander.tracer, expander);
      continue;
    }
    NodeId id = replay.node(node);
    for (Arg& arg : replay.graph->nodes[id].args)
      if (auto* within = arg.get<Subgraph>())
        arg = Subgraph{within->name, std::shared_ptr<const GraphBody>(decompose(*within->body).release())};
  }
  replay.outputs();
  Graph out = remove_dead_code(std::move(replay.graph));
  verify(out.body());
  return out;
}

}  // namespace tenon

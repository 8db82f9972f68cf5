#include "tenon/passes/decompose.h"

#include "tenon/rules/infer.h"
#include "tenon/rules/symbolic_shapes.h"
#include "tenon/trace/retrace.h"

namespace tenon {
namespace {

class Expander : public Dispatcher {
 public:
  explicit Expander(GraphBody& graph) : tracer(graph) {}
  Tracer tracer;
  CallResults run(const Op& op, CallArgs args) override {
    DecomposeRule meaning = meaning_of(op, args);
    if (!meaning) return tracer.call(op, std::move(args));
    DispatchScope scope(this);
    Build build(op, args);
    return meaning(build).values;
  }
};

}  // namespace

Graph decompose(const GraphBody& from) {
  Replay replay(from);
  Expander expander(replay.graph.body());
  ShapesScope shapes(&from.shapes);
  replay.inputs();
  for (const Node& node : from.nodes) {
    CallArgs args;
    for (const Arg& arg : node.args) args.push_back(expander.tracer.call_arg(replay.moved(arg)));
    if (meaning_of(*node.op, args)) {
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

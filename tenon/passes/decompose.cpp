#include "tenon/passes/decompose.h"

#include "tenon/ops/known.h"
#include "tenon/trace/trace.h"

namespace tenon {
namespace {

bool stands_for_others(const Op& op) { return op.def && op.def->decompose && !op.def->lower && !op.def->scalar && !op.def->view && !op.def->kernel; }

class Expander : public Dispatcher {
 public:
  explicit Expander(GraphBody& graph) : tracer(graph) {}
  Tracer tracer;
  CallResults call(const Op& op, CallArgs args) override {
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
    if (!stands_for_others(*node.op)) {
      replay.node(node);
      continue;
    }
    CallArgs args;
    for (const Arg& a : node.args) args.push_back(expander.tracer.call_arg(replay.moved(a)));
    GradMode grad(node.grad_enabled);
    expander.tracer.origin = &node.origin;
    expander.tracer.phase = node.phase;
    CallResults results = expander.call(*node.op, std::move(args));
    expander.tracer.origin = nullptr;
    for (size_t i = 0; i < node.results.size(); ++i) {
      std::vector<Value> fresh;
      for_each_tensor(results[i], [&](const Tensor& t) { fresh.push_back(expander.tracer.value(t)); });
      size_t next = 0;
      for_each_tensor(node.results[i], [&](const Value& v) { if (v && next < fresh.size()) replay.map[v.id] = fresh[next++]; });
    }
  }
  replay.outputs();
  Graph out = remove_dead_code(std::move(replay.graph));
  verify(out.body());
  return out;
}

}  // namespace tenon

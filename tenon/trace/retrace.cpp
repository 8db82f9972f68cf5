#include "tenon/trace/retrace.h"

namespace tenon {

void retrace(const Node& node, Replay& replay, Tracer& tracer, Dispatcher& dispatcher) {
  CallArgs args;
  for (const Arg& a : node.args) args.push_back(tracer.call_arg(replay.moved(a)));
  GradMode grad(node.grad_enabled);
  tracer.origin = &node.origin;
  auto first = static_cast<NodeId>(tracer.graph().nodes.size());   // of the nodes made for it
  tracer.phase = node.phase;
  CallResults results = dispatcher.call(*node.op, std::move(args));
  tracer.origin = nullptr;
  expect(results.size() == node.results.size(), node.op->name(), " gave ", results.size(), " results where its node has ", node.results.size());
  for (size_t i = 0; i < node.results.size(); ++i) {
    std::vector<Value> fresh;
    for_each_tensor(results[i], [&](const Tensor& t) { fresh.push_back(tracer.value(t)); });
    size_t next = 0;
    for_each_tensor(node.results[i], [&](const Value& v) {
      if (!v || next >= fresh.size()) return;
      Value made = fresh[next++];
      replay.map[v.id] = made;
      // What follows was traced with the strides of the node's own results: they are promised on.
      TensorMeta& meta = tracer.graph().info(made).meta;
      const TensorMeta& promised = replay.from().info(v).meta;
      if (tracer.graph().info(made).producer >= first && tracer.graph().info(made).producer != no_id && meta.sizes == promised.sizes) meta.strides = promised.strides;
    });
  }
}

}  // namespace tenon

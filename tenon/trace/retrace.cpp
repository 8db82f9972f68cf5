#include "tenon/trace/retrace.h"

namespace tenon {

void retrace(const Node& node, Replay& replay, Tracer& tracer, Dispatcher& dispatcher) {
  CallArgs args;
  for (const Arg& a : node.args) args.push_back(tracer.call_arg(replay.moved(a)));
  GradMode grad(node.grad_enabled);
  tracer.origin = &node.origin;
  tracer.phase = node.phase;
  CallResults results = dispatcher.call(*node.op, std::move(args));
  tracer.origin = nullptr;
  expect(results.size() == node.results.size(), node.op->name(), " gave ", results.size(), " results where its node has ", node.results.size());
  for (size_t i = 0; i < node.results.size(); ++i) {
    std::vector<Value> fresh;
    for_each_tensor(results[i], [&](const Tensor& t) { fresh.push_back(tracer.value(t)); });
    size_t next = 0;
    for_each_tensor(node.results[i], [&](const Value& v) { if (v && next < fresh.size()) replay.map[v.id] = fresh[next++]; });
  }
}

}  // namespace tenon

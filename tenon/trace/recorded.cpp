#include "tenon/trace/recorded.h"

namespace tenon {

std::vector<BasicArg<TensorMeta>> recorded_metas(const GraphBody& graph, const Node& node) {
  std::vector<BasicArg<TensorMeta>> metas;
  for (const Arg& r : node.results) {
    auto* v = r.get<Value>();
    if (v && *v && graph.info(*v).type != ValueType::tensor) metas.emplace_back(graph.info(*v).expr);
    else if (v && !*v) metas.emplace_back();
    else metas.push_back(map_tensors<TensorMeta>(r, [&](const Value& value) { return graph.info(value).meta; }));
  }
  return metas;
}

void keep_results(const Node& node, const CallResults& results, std::vector<CallArg>& values) {
  for (size_t i = 0; i < node.results.size() && i < results.size(); ++i) {
    if (auto* v = node.results[i].get<Value>(); v && *v) values[v->id] = results[i];
    else if (auto* list = node.results[i].get<std::vector<Value>>()) {
      auto* tensors = results[i].get<std::vector<Tensor>>();
      expect(tensors && tensors->size() == list->size(), node.op->name(),
             " gave another number of tensors than its node has results");
      for (size_t k = 0; k < list->size(); ++k) values[(*list)[k].id] = CallArg((*tensors)[k]);
    }
  }
}

}  // namespace tenon

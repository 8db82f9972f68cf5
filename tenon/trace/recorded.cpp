#include "tenon/trace/recorded.h"

#include <algorithm>

#include "tenon/rules/symbolic_shapes.h"
#include "tenon/trace/trace.h"

namespace tenon {

namespace {

bool agree(const TensorMeta& said, const TensorMeta& is) {
  bool same = said.dtype == is.dtype && said.rank() == is.rank();
  for (size_t i = 0; same && i < is.rank(); ++i) same = may_equal(said.sizes[i], is.sizes[i]);
  return same;
}

}  // namespace

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

void require_as_said(const Node& node, const GraphBody& from, const std::vector<CallArg>& values,
                     const CallArgs& args) {
  bool changed = false;
  for_each_input(node, [&](Value v) {
    auto* t = values[v.id].get<Tensor>();
    changed = changed || (t && *t && from.info(v).type == ValueType::tensor && !agree(from.info(v).meta, t->meta()));
  });
  if (!changed) return;
  bool good = std::none_of(node.args.begin(), node.args.end(), [](const Arg& arg) { return arg.is<Subgraph>(); });
  Metas made;
  if (good) made = infer_any(*node.op, args);
  for (size_t i = 0; good && i < node.results.size(); ++i) {
    std::vector<Value> said;
    std::vector<TensorMeta> is;
    for_each_tensor(node.results[i], [&](Value v) { said.push_back(v); });
    if (i < made.values.size()) for_each_tensor(made.values[i], [&](const TensorMeta& meta) { is.push_back(meta); });
    if (said.size() == 1 && !said[0]) continue;  // nobody reads it
    good = said.size() == is.size();
    for (size_t j = 0; good && j < said.size(); ++j) good = !said[j] || agree(from.info(said[j]).meta, is[j]);
  }
  require(good, "node ", quoted(node.origin.name), " (", node.op->target,
          ") uses a tensor that a view in place has given other sizes, and is described for the old ones");
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

#include "tenon/passes/common_subexpressions.h"

#include <unordered_map>

#include "tenon/base/text.h"

namespace tenon {
namespace {

bool may_be_merged(const Node& node) {
  const Traits& t = node.op->traits;
  if (node.op->stays() || t.random || t.control != Control::none) return false;
  for (const Arg& arg : node.args)
    if (arg.is<Subgraph>()) return false;
  bool tensors = true;  // a number that only the data tell has a symbol of its own
  for (const Arg& result : node.results) tensors = tensors && !result.is<SymInt>();
  return tensors;
}

}  // namespace

Graph merge_common_subexpressions(const GraphBody& graph) {
  Replay replay(graph);
  replay.inputs();
  std::unordered_map<std::string, size_t> known;  // what a call says -> the node that made it first
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (may_be_merged(node)) {
      std::string key = text(node.op->name(), node.grad_enabled ? "" : " without gradients");
      for (const Arg& arg : node.args) key += " " + to_text(replay.graph.body(), replay.moved(arg));
      auto [at, is_new] = known.try_emplace(std::move(key), i);
      if (!is_new) {
        std::vector<Value> first;
        for_each_result(graph.nodes[at->second], [&](Value v) { first.push_back(replay.map[v.id]); });
        size_t next = 0;
        for_each_result(node, [&](Value v) { replay.map[v.id] = first.at(next++); });
        continue;
      }
    }
    replay.node(node);
  }
  replay.outputs();
  return std::move(replay.graph);
}

}  // namespace tenon

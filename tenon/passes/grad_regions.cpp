#include "tenon/passes/grad_regions.h"

#include "tenon/ops/structural.h"

namespace tenon {
namespace {

// The nodes [begin, end) of a graph as a region at the end of the replayed one.
void add_region(const GraphBody& from, size_t begin, size_t end, const std::vector<size_t>& last_use, Replay& replay) {
  auto body = std::make_shared<GraphBody>();
  body->shapes = from.shapes;
  std::vector<Value> inside(from.values.size());
  Args operands, results;
  auto enter = [&](Value v) {
    if (inside[v.id]) return;
    ValueInfo info = from.info(v);
    info.producer = no_id;
    inside[v.id] = add_value(*body, std::move(info));
    body->inputs.emplace_back(inside[v.id]);
    operands.emplace_back(replay.map[v.id]);
  };
  for (size_t i = begin; i < end; ++i) {
    Node node = from.nodes[i];
    for_each_input(node, enter);
    for (Arg& arg : node.args) arg = map_tensors<Value>(arg, [&](const Value& v) { return v ? inside[v.id] : v; });
    for (Arg& result : node.results)
      for_each_tensor(result, [&](Value& v) {
        if (v) v = inside[v.id] = add_value(*body, from.info(v));
      });
    node.grad_enabled = true;  // the region says it
    add_node(*body, std::move(node));
  }
  auto give = [&](size_t i, bool needed) {
    for_each_result(from.nodes[i], [&](Value v) {
      if (needed && last_use[v.id] < end) return;
      body->outputs.emplace_back(inside[v.id]);
      replay.map[v.id] = add_value(replay.graph.body(), from.info(v));
      results.emplace_back(replay.map[v.id]);
    });
  };
  for (size_t i = begin; i < end; ++i) give(i, true);
  for (size_t i = end; i-- > begin && results.empty();) give(i, false);  // PyTorch reads no region that gives nothing
  Node region;
  region.op = &grad_region.op();
  region.args = {false, Subgraph{unique_name(replay.graph.body(), "submod"), body}};
  region.args.insert(region.args.end(), operands.begin(), operands.end());
  region.results = std::move(results);
  region.origin.hop_single_return = 0;
  region.origin.metadata = from.nodes[begin].origin.metadata;
  add_node(replay.graph.body(), std::move(region));
}

}  // namespace

Graph make_grad_regions(const GraphBody& from) {
  std::vector<size_t> last_use(from.values.size(), 0);
  for (size_t i = 0; i < from.nodes.size(); ++i) for_each_input(from.nodes[i], [&](Value v) { last_use[v.id] = i; });
  for (const Arg& output : from.outputs)
    for_each_tensor(output, [&](const Value& v) {
      if (v) last_use[v.id] = from.nodes.size();
    });
  Replay replay(from);
  replay.inputs();
  for (size_t i = 0; i < from.nodes.size();) {
    size_t end = i;
    while (end < from.nodes.size() && !from.nodes[end].grad_enabled) ++end;
    if (end > i) add_region(from, i, end, last_use, replay);
    else replay.node(from.nodes[end++]);
    i = end;
  }
  replay.outputs();
  verify(replay.graph.body());
  return std::move(replay.graph);
}

}  // namespace tenon

#include "tenon/passes/normalize.h"

#include <set>

#include "tenon/passes/autocast.h"

namespace tenon {
namespace {

class Normalizer {
 public:
  explicit Normalizer(const GraphBody& from) : replay_(from) {}

  Graph run(const GraphBody& from) {
    refuse_unknown(from);
    replay_.inputs();
    nodes(from, replay_.map, true, false);
    for (const Arg& output : from.outputs) replay_.graph->outputs.push_back(translated(output, from, replay_.map));
    return std::move(replay_.graph);
  }

 private:
  using Map = std::vector<Value>;  // values of the body being read -> values of the new graph

  // All of them at once: a user who meets one missing operator wants to know of the others.
  static void collect_unknown(const GraphBody& graph, std::set<std::string>& names) {
    for (const Node& node : graph.nodes) {
      if (node.op->traits.unknown) names.insert(node.op->target);
      for (const Arg& arg : node.args)
        if (const Subgraph* sub = arg.get<Subgraph>()) collect_unknown(*sub->body, names);
    }
  }
  static void refuse_unknown(const GraphBody& graph) {
    std::set<std::string> names;
    collect_unknown(graph, names);
    require(names.empty(),
            names.size() == 1 ? "an operator is not supported: " : text(names.size(), " operators are not supported: "),
            join(std::vector<std::string>(names.begin(), names.end()), ", "));
  }

  // An argument in terms of the new graph: numbers that the graph computes become expressions.
  Arg translated(const Arg& arg, const GraphBody& from, const Map& map) {
    if (auto* v = arg.get<Value>()) {
      if (!*v) return {};
      const ValueInfo& info = from.values[v->id];
      if (info.type == ValueType::integer || info.type == ValueType::floating || info.type == ValueType::boolean)
        return info.expr;
      return map[v->id];
    }
    if (auto* items = arg.get<Arg::Items>()) {
      Arg::Items out;
      bool numbers = true;
      for (const Arg& item : *items) {
        out.push_back(translated(item, from, map));
        numbers = numbers && out.back().is<SymInt>();
      }
      if (!numbers) return out;
      Sizes sizes;
      for (const Arg& item : out) sizes.push_back(*item.get<SymInt>());
      return sizes;
    }
    return map_tensors<Value>(arg, [&](const Value& v) { return v ? map[v.id] : v; });
  }

  void nodes(const GraphBody& from, Map& map, bool grad, bool autocast) {
    for (const Node& node : from.nodes) {
      switch (node.op->traits.control) {
        case Control::none: break;
        case Control::grad_region:
          inlined(node, from, map, *node.args.at(0).get<bool>() /* nested regions set it anew */, autocast, 1);
          continue;
        case Control::autocast_region: inlined(node, from, map, grad, autocast_within(node, autocast), 4); continue;
        case Control::choose:
        case Control::repeat:
        case Control::map:
        case Control::scan:
          fail(node.op->target, " is not supported yet: a program with control flow can be shown and converted only");
      }
      bool on_sizes = node.op->kind == OpKind::symbolic || node.op->traits.measures != Measure::none;
      if (on_sizes || node.op->traits.asserts) {
        if (node.op->traits.asserts && node.op->schema.find("assert_msg") >= 0) assertion(node, from, map);
        continue;  // sizes are expressions now; metadata was checked when the file was read, ranges are in the shape
                   // environment
      }
      Node copy = node;
      for (Arg& arg : copy.args) arg = translated(arg, from, map);
      copy.grad_enabled = grad && node.grad_enabled;
      results(copy, from, map);
      if (autocast) convert_for_autocast(replay_.graph.body(), copy);
      add_node(replay_.graph.body(), std::move(copy));
    }
  }

  void assertion(const Node& node, const GraphBody& from, Map& map) {
    Node copy = node;
    for (Arg& arg : copy.args) arg = translated(arg, from, map);
    add_node(replay_.graph.body(), std::move(copy));
  }

  void results(Node& node, const GraphBody& from, Map& map) {
    for (Arg& result : node.results)
      for_each_tensor(result, [&](Value& v) {
        if (!v) return;
        Value fresh = add_value(replay_.graph.body(), from.values[v.id]);
        map[v.id] = fresh;
        v = fresh;
      });
  }

  // The body of a region in place of its call; `first` is the position of its graph, operands follow.
  void inlined(const Node& node, const GraphBody& from, Map& map, bool grad, bool autocast, size_t first) {
    const Subgraph* sub = node.args.at(first).get<Subgraph>();
    require(sub != nullptr, node.op->target, ": expected a graph as argument ", first);
    const GraphBody& body = *sub->body;
    Map inside(body.values.size());
    size_t operands = node.args.size() - first - 1;
    require(operands == body.inputs.size(), node.op->target, ": ", operands, " operands for a graph of ",
            body.inputs.size(), " inputs");
    for (size_t i = 0; i < operands; ++i) {
      const Value* placeholder = body.inputs[i].get<Value>();
      if (!placeholder) continue;
      const Value* operand = node.args[first + 1 + i].get<Value>();
      if (operand && *operand && from.values[operand->id].type == ValueType::tensor)
        inside[placeholder->id] = map[operand->id];
    }
    nodes(body, inside, grad, autocast);
    std::vector<Value> given;
    for (const Arg& output : body.outputs)
      for_each_tensor(output, [&](const Value& v) { given.push_back(v ? inside[v.id] : v); });
    size_t next = 0;
    for_each_result(node, [&](Value v) {
      require(next < given.size(), node.op->target, ": more results than its graph has outputs");
      map[v.id] = given[next++];
    });
  }

  Replay replay_;
};

}  // namespace

Graph normalize(const GraphBody& graph) {
  Graph out = Normalizer(graph).run(graph);
  verify(out.body());
  return out;
}

}  // namespace tenon

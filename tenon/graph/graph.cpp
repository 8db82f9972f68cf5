#include "tenon/graph/graph.h"

#include <unordered_map>

#include "tenon/graph/symbol_names.h"
#include "tenon/sym/evaluate.h"
#include "tenon/tensor/arg_members.h"

namespace tenon {

template struct BasicArg<Value>;
template BasicArg<Value> without_tensors(const BasicArg<Value>&);
template BasicArg<Value> without_tensors(const BasicArg<Tensor>&);
template BasicArg<Tensor> without_tensors(const BasicArg<Value>&);
template BasicArg<TensorMeta> without_tensors(const BasicArg<Value>&);
template BasicArg<Value> without_tensors(const BasicArg<TensorMeta>&);

GraphBody::GraphBody() = default;
GraphBody::GraphBody(const GraphBody&) = default;
GraphBody& GraphBody::operator=(const GraphBody&) = default;
GraphBody::GraphBody(GraphBody&&) noexcept = default;
GraphBody& GraphBody::operator=(GraphBody&&) noexcept = default;
GraphBody::~GraphBody() = default;

Graph Graph::copy() const {
  Graph other;
  *other.body_ = *body_;
  return other;
}

std::string unique_name(GraphBody& graph, const std::string& wanted) {
  auto [entry, fresh] = graph.names.try_emplace(wanted, 1);
  if (fresh) return wanted;
  for (;;) {
    std::string candidate = text(wanted, "_", entry->second++);
    if (graph.names.try_emplace(candidate, 1).second) return candidate;
    entry = graph.names.find(wanted);  // try_emplace may have moved the table
  }
}

Value add_value(GraphBody& graph, ValueInfo info) {
  info.name = unique_name(graph, info.name);
  graph.values.push_back(std::move(info));
  return {static_cast<ValueId>(graph.values.size() - 1)};
}

Value add_input(GraphBody& graph, std::string name, TensorMeta meta) {
  Value v = add_value(graph, {.name = std::move(name), .meta = std::move(meta)});
  graph.inputs.emplace_back(v);
  return v;
}

NodeId add_node(GraphBody& graph, Node node) {
  auto id = static_cast<NodeId>(graph.nodes.size());
  for_each_result(node, [&](Value v) { graph.values[v.id].producer = id; });
  graph.nodes.push_back(std::move(node));
  return id;
}

const Op* add_unknown_op(GraphBody& graph, std::string_view target, const std::vector<std::string>& arg_names,
                         size_t results) {
  auto op = std::make_shared<Op>();
  op->target = target;
  std::string_view name = target;
  if (starts_with(name, "torch.ops.")) name.remove_prefix(10);
  if (ends_with(name, ".default")) name.remove_suffix(8);
  size_t dot = name.size() < target.size() ? name.find('.') : name.npos;
  op->schema.name = dot == name.npos ? std::string(name) : text(name.substr(0, dot), "::", name.substr(dot + 1));
  op->kind = OpKind::structural;
  op->traits.unknown = true;
  for (const std::string& each : arg_names) op->schema.args.push_back({.name = each});
  op->schema.returns.resize(results);
  graph.unknown_ops.push_back(op);
  return op.get();
}

Replay::Replay(const GraphBody& from) : map(from.values.size()), from_(from) {
  graph->shapes = from.shapes;
  graph->single_tensor_return = from.single_tensor_return;
  graph->unknown_ops = from.unknown_ops;
}

void Replay::inputs() {
  for (const Arg& input : from_.inputs) {
    if (const Value* v = input.get<Value>()) {
      map[v->id] = add_value(graph.body(), from_.values[v->id]);
      graph->inputs.emplace_back(map[v->id]);
    } else {
      graph->inputs.push_back(input);
    }
  }
}

Arg Replay::moved(const Arg& arg) const {
  return map_tensors<Value>(arg, [&](const Value& v) { return v ? map[v.id] : v; });
}

NodeId Replay::node(const Node& node) {
  Node copy = node;
  for (Arg& arg : copy.args) arg = moved(arg);
  for (Arg& result : copy.results)
    for_each_tensor(result, [&](Value& v) {
      if (!v) return;
      Value fresh = add_value(graph.body(), from_.values[v.id]);
      map[v.id] = fresh;
      v = fresh;
    });
  return add_node(graph.body(), std::move(copy));
}

void Replay::outputs() {
  for (const Arg& output : from_.outputs) graph->outputs.push_back(moved(output));
}

namespace {

template <class F>
void for_each_symbol(const Arg& arg, F&& f) {
  auto each = [&](SymInt e) {
    if (!e.is_int())
      for (SymInt s : sym::symbols_of(e)) f(s);
  };
  if (auto* e = arg.get<SymInt>()) each(*e);
  else if (auto* sizes = arg.get<Sizes>())
    for (SymInt e : *sizes) each(e);
  else if (auto* items = arg.get<Arg::Items>())
    for (const Arg& item : *items) for_each_symbol(item, f);
  else if (auto* mapping = arg.get<Arg::Mapping>())
    for (const Arg& item : mapping->values) for_each_symbol(item, f);
  else if (auto* within = arg.get<Subgraph>()) {
    for (const ValueInfo& info : within->body->values) {
      for (SymInt e : info.meta.sizes) each(e);
      each(info.expr);
    }
    for (const Node& node : within->body->nodes)
      for (const Arg& inner : node.args) for_each_symbol(inner, f);
  }
}

/// Symbols that stand for what a node finds in its data (item, nonzero), each with the node that tells its value: one
/// whose results show a symbol that none of its arguments does.
std::unordered_map<SymInt, size_t> symbols_from_data(const GraphBody& graph) {
  std::unordered_map<SymInt, size_t> found;
  auto each = [&](const Arg& arg, const auto& visit) {
    for_each_symbol(arg, visit);
    for_each_tensor(arg, [&](const Value& v) {
      if (!v) return;
      const ValueInfo& info = graph.info(v);
      for_each_symbol(info.type == ValueType::tensor ? Arg(info.meta.sizes) : Arg(info.expr), visit);
    });
  };
  for (const Arg& input : graph.inputs) each(input, [&](SymInt s) { found.try_emplace(s, graph.nodes.size()); });
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    std::vector<SymInt> shown;
    for (const Arg& result : graph.nodes[i].results) each(result, [&](SymInt s) { shown.push_back(s); });
    if (shown.empty()) continue;
    for (const Arg& arg : graph.nodes[i].args) each(arg, [&](SymInt s) { std::erase(shown, s); });
    for (SymInt s : shown) found.try_emplace(s, i);
  }
  std::erase_if(found, [&](const auto& entry) { return entry.second == graph.nodes.size(); });
  return found;
}

/// Whether data must tell a number that the program knows already (it was asserted to be 3, or to equal another one): a
/// run compares them.
bool is_expected(const GraphBody& graph, size_t node, const std::unordered_map<SymInt, size_t>& origins) {
  const Op& op = *graph.nodes[node].op;
  if (op.kind == OpKind::symbolic || op.kind == OpKind::structural || op.traits.measures != Measure::none) return false;
  bool expected = false;
  for_each_result(graph.nodes[node], [&](Value v) {
    const ValueInfo& info = graph.info(v);
    if (info.type != ValueType::integer && info.type != ValueType::boolean) return;
    expected = true;
    for (SymInt s : sym::symbols_of(info.expr))
      if (auto at = origins.find(s); at != origins.end() && at->second == node) expected = false;
  });
  return expected;
}

}  // namespace

Graph remove_dead_code(Graph graph) {
  const GraphBody& body = graph.body();
  std::unordered_map<SymInt, size_t> origins = symbols_from_data(body);
  std::vector<bool> needed(body.values.size()), keep(body.nodes.size());
  auto need = [&](const Arg& arg) {
    for_each_tensor(arg, [&](const Value& v) {
      if (v) needed[v.id] = true;
    });
    if (!origins.empty())
      for_each_symbol(arg, [&](SymInt s) {
        if (auto at = origins.find(s); at != origins.end()) keep[at->second] = true;
      });
  };
  for (const Arg& output : body.outputs) need(output);
  for (size_t i = body.nodes.size(); i-- > 0;) {
    const Node& node = body.nodes[i];
    bool live = keep[i] || node.op->stays();
    for_each_result(node, [&](Value v) { live = live || needed[v.id]; });
    keep[i] = live = live || is_expected(body, i, origins);
    if (live)
      for (const Arg& arg : node.args) need(arg);
  }
  Replay replay(body);
  replay.inputs();
  for (size_t i = 0; i < body.nodes.size(); ++i)
    if (keep[i]) replay.node(body.nodes[i]);
  replay.outputs();
  return std::move(replay.graph);
}

void verify(const GraphBody& graph) {
  std::vector<bool> defined(graph.values.size());
  auto define = [&](Value v, const std::string& who) {
    expect(v.id < graph.values.size(), who, " defines a value the graph does not have");
    expect(!defined[v.id], who, " defines %", graph.values[v.id].name, " a second time");
    defined[v.id] = true;
  };
  for (const Arg& input : graph.inputs)
    if (const Value* v = input.get<Value>()) define(*v, "an input");
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    expect(node.op != nullptr, "node ", i, " has no operator");
    if (node.op->kind != OpKind::structural && !node.op->traits.unknown && node.op->kind != OpKind::symbolic) {
      expect(node.args.size() == node.op->schema.args.size(), node.op->name(), " has ", node.args.size(),
             " arguments, its schema ", node.op->schema.args.size());
      expect(node.results.size() == node.op->schema.returns.size(), node.op->name(), " has ", node.results.size(),
             " results, its schema ", node.op->schema.returns.size());
    }
    for_each_input(node, [&](Value v) {
      expect(v.id < graph.values.size() && defined[v.id], node.op->name(), " uses %",
             v.id < graph.values.size() ? graph.values[v.id].name : text(v.id), " before it is defined");
    });
    for_each_result(node, [&](Value v) { define(v, node.op->name()); });
    for (const Arg& arg : node.args)
      if (const Subgraph* sub = arg.get<Subgraph>()) verify(*sub->body);
  }
  for (const Arg& output : graph.outputs)
    for_each_tensor(output, [&](const Value& v) {
      expect(!v || (v.id < graph.values.size() && defined[v.id]), "an output is not defined");
    });
}

void reserve_names(const GraphBody& graph, sym::ShapeEnv& shapes) {
  for (const ValueInfo& info : graph.values) {
    for (SymInt e : info.meta.sizes) shapes.reserve_names(e);
    shapes.reserve_names(info.expr);
  }
  for (const Node& node : graph.nodes)
    for (const Arg& arg : node.args)
      if (auto* within = arg.get<Subgraph>()) reserve_names(*within->body, shapes);
}

}  // namespace tenon

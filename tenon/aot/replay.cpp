// The nodes of a program, called one after another; control flow with graphs that are made pure first.
#include <algorithm>

#include "tenon/aot/functionalizer.h"
#include "tenon/ops/random.h"
#include "tenon/rules/symbolic_shapes.h"

namespace tenon {
namespace {

std::vector<BasicArg<TensorMeta>> metas_of(const GraphBody& graph, const Node& node) {
  std::vector<BasicArg<TensorMeta>> metas;
  for (const Arg& r : node.results) {
    auto* v = r.get<Value>();
    if (v && *v && graph.info(*v).type != ValueType::tensor) metas.emplace_back(graph.info(*v).expr);
    else if (v && !*v) metas.emplace_back();
    else metas.push_back(map_tensors<TensorMeta>(r, [&](const Value& value) { return graph.info(value).meta; }));
  }
  return metas;
}

bool has_graphs(const Node& node) {
  return std::any_of(node.args.begin(), node.args.end(), [](const Arg& arg) { return arg.is<Subgraph>(); });
}

/// A graph without writes, and what it leaves in those of its inputs that it wrote to.
struct Pure {
  Graph graph;
  std::vector<Value> left;  // by input; none: it did not write to it
};

Pure purified(const GraphBody& body) {
  Pure out;
  GraphBody& graph = out.graph.body();
  graph.shapes = body.shapes;
  graph.single_tensor_return = body.single_tensor_return;
  Functionalizer inside(graph);
  std::vector<CallArg> values(body.values.size());
  std::vector<Tensor> came;
  for (const Arg& input : body.inputs) {
    Value v = input.as<Value>();
    ValueInfo info = body.info(v);
    info.producer = no_id;
    Value made = add_value(graph, std::move(info));
    graph.inputs.emplace_back(made);
    came.push_back(inside.fresh(inside.tracer.tensor(made)));
    values[v.id] = came.back();
  }
  RandomScope random([]() -> Tensor {
    fail_unsupported("random operators within control flow are not supported yet; draw the numbers before it");
  });
  ShapesScope shapes(&graph.shapes);
  DispatchScope scope(&inside);
  inside.replay(body, values);
  for (const Arg& output : body.outputs) {
    auto* v = output.get<Value>();
    if (!v || !*v) graph.outputs.push_back(output);
    else if (auto* t = values[v->id].get<Tensor>()) graph.outputs.emplace_back(inside.tracer.value(inside.read(*t)));
    else graph.outputs.emplace_back(values[v->id].as<SymInt>());
  }
  for (const Tensor& t : came)
    out.left.push_back(inside.find(t).memory->version > 0 ? inside.tracer.value(inside.read(t)) : Value{});
  return out;
}

}  // namespace

void Functionalizer::replay(const GraphBody& from, std::vector<CallArg>& values) {
  for (const Node& node : from.nodes) {
    CallArgs args;
    for (const Arg& a : node.args) {
      if (auto* v = a.get<Value>()) args.push_back(*v ? values[v->id] : CallArg());
      else
        args.push_back(
            map_tensors<Tensor>(a, [&](const Value& v) { return v ? values[v.id].as<Tensor>() : Tensor(); }));
    }
    std::vector<BasicArg<TensorMeta>> metas = metas_of(from, node);
    GradMode grad(node.grad_enabled);
    tracer.metadata = node.origin.metadata;
    require_given(*node.op, args);
    CallResults results = has_graphs(node) ? control(*node.op, std::move(args), std::move(metas))
                                           : execute(*node.op, std::move(args), &metas);
    tracer.metadata = {};
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (auto* v = node.results[i].get<Value>(); v && *v) values[v->id] = results[i];
      else if (auto* list = node.results[i].get<std::vector<Value>>()) {
        auto* tensors = results[i].get<std::vector<Tensor>>();
        expect(tensors && tensors->size() == list->size(), node.op->name(),
               " gave another number of tensors than its node has results");
        for (size_t k = 0; k < list->size(); ++k) values[(*list)[k].id] = CallArg((*tensors)[k]);
      }
    }
  }
}

// What one of the graphs of a choice writes to comes out of all of them, and is written when the choice is made.
CallResults Functionalizer::control(const Op& op, CallArgs args, KnownMetas metas) {
  std::vector<Tensor> operands;
  for (const CallArg& arg : args)
    if (auto* list = arg.get<std::vector<Tensor>>()) operands.insert(operands.end(), list->begin(), list->end());
  std::vector<Pure> graphs;
  std::vector<bool> written(operands.size());
  for (const CallArg& arg : args)
    if (auto* graph = arg.get<Subgraph>()) {
      graphs.push_back(purified(*graph->body));
      for (size_t i = 0; i < operands.size(); ++i) written[i] = written[i] || graphs.back().left.at(i);
    }
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!written[i]) continue;
    require(op.traits.control == Control::choose, op.target,
            ": its graph writes to what it is given, which is not supported in loops; carry the tensor instead");
    for (size_t k = 0; k < operands.size(); ++k)
      require(k == i || find(operands[k]).memory != find(operands[i]).memory, op.target,
              ": its graph writes to a tensor that shares memory with another one it is given, which is not supported");
    metas.emplace_back(make_meta(operands[i].dtype(), operands[i].sizes(), operands[i].meta().device));
  }
  size_t results = metas.size() - static_cast<size_t>(std::count(written.begin(), written.end(), true));
  size_t next = 0;
  CallArgs values;
  for (const CallArg& arg : args) {
    if (auto* graph = arg.get<Subgraph>()) {
      Pure& pure = graphs[next++];
      for (size_t i = 0; i < operands.size(); ++i)
        if (written[i]) pure.graph->outputs.emplace_back(pure.left[i] ? Arg(pure.left[i]) : pure.graph->inputs[i]);
      values.emplace_back(
          Subgraph{graph->name, std::shared_ptr<const GraphBody>(remove_dead_code(std::move(pure.graph)).release())});
    } else {
      values.push_back(map_tensors<Tensor>(arg, [&](const Tensor& t) { return read(t); }));
    }
  }
  CallResults made = tracer.append(op, std::move(values), std::move(metas));
  for (size_t i = 0, at = results; i < operands.size(); ++i)
    if (written[i]) write(operands[i], made[at++].as<Tensor>());
  made.resize(results);
  for (CallArg& v : made) v = map_tensors<Tensor>(v, [&](const Tensor& t) { return fresh(t); });
  return made;
}

}  // namespace tenon

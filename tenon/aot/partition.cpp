#include "tenon/aot/partition.h"

#include <algorithm>

#include "tenon/ops/conversion.h"
#include "tenon/sym/evaluate.h"
#include "tenon/trace/trace.h"

namespace tenon {
namespace {

// A copy of the joint graph's nodes of one side.
struct Half {
  Replay replay;
  CallingConvention convention;
  explicit Half(const JointProgram& joint) : replay(joint.graph.body()) {
    convention.in = joint.convention.in;
    convention.out = joint.convention.out;
  }
  Value input(const GraphBody& joint, Value v, InputMeaning meaning) {
    ValueInfo info = joint.info(v);
    info.producer = no_id;
    Value made = add_value(replay.graph.body(), std::move(info));
    replay.map[v.id] = made;
    replay.graph->inputs.emplace_back(made);
    convention.inputs.push_back(std::move(meaning));
    return made;
  }
};

std::vector<SymInt> symbols_of_backward(const GraphBody& graph) {
  std::vector<SymInt> out;
  auto add = [&](SymInt size) {
    for (SymInt s : sym::symbols_of(size))
      if (std::find(out.begin(), out.end(), s) == out.end()) out.push_back(s);
  };
  for (const Node& node : graph.nodes) {
    if (node.phase != Phase::backward) continue;
    for (const Arg& arg : node.args) {
      if (auto* size = arg.get<SymInt>()) add(*size);
      if (auto* sizes = arg.get<Sizes>())
        for (SymInt size : *sizes) add(size);
    }
  }
  return out;
}

}  // namespace

TrainingProgram split(const JointProgram& joint) {
  const GraphBody& graph = joint.graph.body();
  std::vector<bool> in_backward(graph.values.size()), updated(graph.values.size()), needed(graph.values.size());
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    if (const Value* v = graph.inputs[i].get<Value>();
        v && std::holds_alternative<input::Tangent>(joint.convention.inputs[i]))
      in_backward[v->id] = true;
  for (const OutputMeaning& m : joint.convention.outputs)
    if (auto* u = std::get_if<output::Updated>(&m))
      if (const Value* v = graph.inputs[u->input].get<Value>()) updated[v->id] = true;
  for (const Node& node : graph.nodes)
    if (node.phase == Phase::backward) for_each_result(node, [&](Value v) { in_backward[v.id] = true; });
  auto need = [&](Value v) {
    if (v && !in_backward[v.id]) needed[v.id] = true;
  };
  for (const Node& node : graph.nodes)
    if (node.phase == Phase::backward) for_each_input(node, need);
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    if (std::holds_alternative<output::Gradient>(joint.convention.outputs[i]))
      for_each_tensor(graph.outputs[i], [&](const Value& v) { need(v); });

  TrainingProgram out;
  Half forward(joint), backward(joint);
  forward.convention.user_inputs = joint.convention.user_inputs;
  forward.convention.user_names = joint.convention.user_names;
  forward.convention.user_outputs = joint.convention.user_outputs;
  forward.convention.aliases = joint.convention.aliases;
  forward.convention.guards = joint.convention.guards;
  std::vector<size_t> input_of(graph.inputs.size());  // joint input -> forward input
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const Value* v = graph.inputs[i].get<Value>();
    if (!v || std::holds_alternative<input::Tangent>(joint.convention.inputs[i])) continue;
    input_of[i] = forward.replay.graph->inputs.size();
    forward.input(graph, *v, joint.convention.inputs[i]);
  }
  for (const Node& node : graph.nodes)
    if (node.phase == Phase::forward) forward.replay.node(node);
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    OutputMeaning meaning = joint.convention.outputs[i];
    if (std::holds_alternative<output::Gradient>(meaning)) continue;
    if (auto* u = std::get_if<output::Updated>(&meaning)) u->input = input_of[u->input];
    if (auto* v = std::get_if<output::Viewed>(&meaning)) v->input = input_of[v->input];
    forward.replay.graph->outputs.push_back(forward.replay.moved(graph.outputs[i]));
    forward.convention.outputs.push_back(meaning);
  }
  // Saved values, then cotangents. What the program updates is overwritten before the backward runs: a copy is saved.
  for (ValueId id = 0; id < graph.values.size(); ++id) {
    if (!needed[id]) continue;
    const ValueInfo& info = graph.values[id];
    if (info.type != ValueType::tensor) continue;  // sizes are expressions, known to both sides
    Value saved = forward.replay.map[id];
    if (updated[id]) {
      Tracer tracer(forward.replay.graph.body());
      DispatchScope scope(&tracer);
      saved = tracer.value(clone(tracer.tensor(saved)));
    }
    forward.replay.graph->outputs.emplace_back(saved);
    forward.convention.outputs.emplace_back(output::Saved{info.name});
    backward.input(graph, Value{id}, input::Saved{info.name});
  }
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    if (const Value* v = graph.inputs[i].get<Value>();
        v && std::holds_alternative<input::Tangent>(joint.convention.inputs[i]))
      backward.input(graph, *v, joint.convention.inputs[i]);
  // Sizes are expressions on both sides; a symbol that no tensor of the backward shows is handed over as a number.
  for (SymInt symbol : symbols_of_backward(graph)) {
    bool shown = false;
    for (const Arg& input : backward.replay.graph->inputs)
      if (const Value* v = input.get<Value>())
        for (SymInt size : backward.replay.graph->info(*v).meta.sizes) shown = shown || size == symbol;
    if (shown) continue;
    std::string name(symbol.name());
    forward.replay.graph->outputs.emplace_back(symbol);
    forward.convention.outputs.emplace_back(output::SavedSize{name});
    Value made = add_value(backward.replay.graph.body(), {.name = name, .type = ValueType::integer, .expr = symbol});
    backward.replay.graph->inputs.emplace_back(made);
    backward.convention.inputs.emplace_back(input::SavedSize{name});
  }
  for (const Node& node : graph.nodes)
    if (node.phase == Phase::backward) backward.replay.node(node);
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    if (auto* g = std::get_if<output::Gradient>(&joint.convention.outputs[i])) {
      backward.replay.graph->outputs.push_back(backward.replay.moved(graph.outputs[i]));
      backward.convention.outputs.emplace_back(output::Gradient{input_of[g->input]});  // of the forward's input
    }
  out.forward = {remove_dead_code(std::move(forward.replay.graph)), std::move(forward.convention)};
  out.backward = {std::move(backward.replay.graph), std::move(backward.convention)};
  verify(out.forward.graph.body());
  verify(out.backward.graph.body());
  return out;
}

}  // namespace tenon

#include "tenon/autograd/forward.h"

#include <unordered_set>

#include "tenon/autograd/reverse.h"

namespace tenon {
namespace {

Value add_input(GraphBody& graph, Value like) {
  ValueInfo info = graph.info(like);
  info.producer = no_id;
  info.name = unique_name(graph, "tangent");
  Value made = add_value(graph, std::move(info));
  graph.inputs.emplace_back(made);
  return made;
}

std::vector<Value> values_of(const Args& args, size_t first, size_t count) {
  std::vector<Value> out;
  for (size_t i = first; i < first + count; ++i) out.push_back(args[i].as<Value>());
  return out;
}

}  // namespace

// Gradients are linear in the cotangents: what the tangents make of them, differentiated with respect to these, is how
// the outputs move.
Graph push_forward(const GraphBody& from, size_t moving) {
  size_t inputs = from.inputs.size(), outputs = from.outputs.size();
  std::vector<bool> wanted(inputs);
  for (size_t i = 0; i < moving; ++i) wanted[i] = is_differentiable(from.info(from.inputs[i].as<Value>()).meta.dtype);
  Graph once = prepare_for_gradients(from, wanted);
  GraphBody& graph = once.body();
  std::vector<Value> results, cotangents;
  std::vector<size_t> of;  // the output that each cotangent belongs to
  for (size_t i = 0; i < outputs; ++i) {
    Value v = graph.outputs[i].as<Value>();
    if (!is_differentiable(graph.info(v).meta.dtype)) continue;
    results.push_back(v);
    of.push_back(i);
  }
  for (Value v : results) cotangents.push_back(add_input(graph, v));
  std::vector<Value> gradients = append_backward(graph, results, cotangents, values_of(graph.inputs, 0, moving));
  std::vector<size_t> reached;  // inputs that move an output
  for (size_t i = 0; i < moving; ++i)
    if (gradients[i]) {
      graph.outputs.emplace_back(gradients[i]);
      reached.push_back(i);
    }
  std::vector<bool> linear(inputs + cotangents.size());
  for (size_t i = 0; i < cotangents.size(); ++i) linear[inputs + i] = true;
  Graph twice = prepare_for_gradients(graph, linear);
  GraphBody& out = twice.body();
  std::vector<Value> tangents(moving), given;
  for (size_t i = 0; i < moving; ++i) tangents[i] = add_input(out, out.inputs[i].as<Value>());
  for (size_t i : reached) given.push_back(tangents[i]);
  std::vector<Value> moved = append_backward(out, values_of(out.outputs, outputs, reached.size()), given,
                                             values_of(out.inputs, inputs, cotangents.size()));
  out.outputs.resize(outputs);
  std::vector<Value> by_output(outputs);
  for (size_t i = 0; i < of.size(); ++i) by_output[of[i]] = moved[i];
  for (Value v : by_output) out.outputs.push_back(v ? Arg(v) : Arg());
  Graph clean = remove_dead_code(std::move(twice));
  Args& all = clean->inputs;
  auto first = all.begin() + static_cast<ptrdiff_t>(inputs), last = first + static_cast<ptrdiff_t>(cotangents.size());
  std::unordered_set<ValueId> of_outputs;
  for (auto each = first; each != last; ++each) of_outputs.insert(each->as<Value>().id);
  for (const Node& node : clean->nodes)
    for_each_input(node, [&](Value v) {
      if (of_outputs.contains(v.id))
        fail_unsupported(text("forward mode through ", node.op->name(), " is not supported yet"));
    });
  all.erase(first, last);
  return clean;
}

}  // namespace tenon

#include "tenon/export/transform.h"

#include <unordered_map>

namespace tenon {
namespace {

// Signatures of module calls in terms of another graph, by the names of values.
void move_module_calls(ExportedProgram& program, const GraphBody& old) {
  const GraphBody& graph = program.graph.body();
  std::unordered_map<std::string_view, Value> by_name;
  auto learn = [&](Value v) {
    if (v) by_name[graph.info(v).name] = v;
  };
  for (const Arg& input : graph.inputs) for_each_tensor(input, learn);
  for (const Node& node : graph.nodes) for_each_result(node, learn);
  auto move = [&](Args& args) {
    bool found = true;
    for (Arg& arg : args)
      for_each_tensor(arg, [&](Value& v) {
        if (!v) return;
        auto at = by_name.find(old.info(v).name);
        found = found && at != by_name.end();
        if (found) v = at->second;
      });
    return found;
  };
  for (ModuleCallEntry& entry : program.module_calls) {
    if (!entry.signature) continue;
    bool moved = move(entry.signature->inputs) && move(entry.signature->outputs);
    if (!moved && !entry.fqn.empty()) entry.signature.reset();
    else if (!moved) entry.signature->inputs.clear(), entry.signature->outputs.clear();  // that of the program
  }
}

}  // namespace

ExportedProgram transform(const ExportedProgram& program, const std::vector<std::function<Graph(Graph)>>& passes) {
  Graph graph = program.graph.copy();
  for (const auto& pass : passes) graph = pass(std::move(graph));
  require(
      graph->inputs.size() == program.graph->inputs.size() && graph->outputs.size() == program.graph->outputs.size(),
      "a pass changed the program's ", program.graph->inputs.size(), " inputs and ", program.graph->outputs.size(),
      " outputs to ", graph->inputs.size(), " and ", graph->outputs.size(),
      "; use updated() with a signature of your own for that");
  Signature signature = program.signature;
  for (size_t i = 0; i < signature.inputs.size(); ++i) signature.inputs[i].arg = graph->inputs[i];
  for (size_t i = 0; i < signature.outputs.size(); ++i) signature.outputs[i].arg = graph->outputs[i];
  return updated(program, std::move(graph), std::move(signature));
}

ExportedProgram updated(const ExportedProgram& program, Graph graph, Signature signature,
                        const std::vector<NamedTensor>* state) {
  ExportedProgram out = program.copy();
  out.graph = std::move(graph);
  out.signature = std::move(signature);
  if (state) out.state = *state;
  move_module_calls(out, program.graph.body());
  verify(out);
  return out;
}

}  // namespace tenon

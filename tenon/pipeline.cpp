#include "tenon/pipeline.h"

#include <set>

#include "tenon/aot/write_joint.h"
#include "tenon/export/print.h"
#include "tenon/export/serde/load.h"
#include "tenon/lower/lower.h"
#include "tenon/rules/registry.h"
#include "tenon/passes/check_metas.h"
#include "tenon/passes/decompose.h"
#include "tenon/passes/normalize.h"

namespace tenon {

std::optional<StageName> stage_named(std::string_view name) {
  static constexpr std::string_view names[] = {"read", "normalized", "functional", "joint", "partition", "loops"};
  if (name == "normalised") name = "normalized";
  for (size_t i = 0; i < std::size(names); ++i)
    if (names[i] == name) return static_cast<StageName>(i);
  return std::nullopt;
}

ExportedProgram open_program(const std::string& path) {
  ExportedProgram program = load_exported(path, registry());
  try {
    check_metas(program.graph.body());
  } catch (const Error& e) { fail(path, ": ", e.what()); }
  return program;
}

namespace {

void collect_missing(const GraphBody& graph, std::set<std::string>& names) {
  for (const Node& node : graph.nodes) {
    if (node.op->traits.unknown) names.insert(node.op->target);
    for (const Arg& arg : node.args)
      if (const Subgraph* sub = arg.get<Subgraph>()) collect_missing(*sub->body, names);
  }
}

std::string labelled(const GraphBody& graph, const CallingConvention& convention) {
  return to_text(
      graph, [&](const GraphBody&, size_t i) { return to_text(convention.inputs[i]); },
      [&](const GraphBody&, size_t i) { return to_text(convention.outputs[i], convention); });
}

}  // namespace

std::vector<std::string> missing_operators(const ExportedProgram& program) {
  std::set<std::string> names;
  collect_missing(program.graph.body(), names);
  return {names.begin(), names.end()};
}

std::string show(const ExportedProgram& program, const ShowOptions& options) {
  switch (options.after) {
    case StageName::read: return to_text(program);
    case StageName::normalized: return to_text(normalize(program.graph.body()).body());
    case StageName::functional: {
      FunctionalProgram f = functionalize(program);
      return labelled(f.graph.body(), f.convention);
    }
    case StageName::joint: {
      JointProgram joint = make_joint(functionalize(program), options.of, options.wrt);
      return labelled(joint.graph.body(), joint.convention);
    }
    case StageName::partition: {
      TrainingProgram halves = split(make_joint(functionalize(program), options.of, options.wrt));
      return "forward:\n" + labelled(halves.forward.graph.body(), halves.forward.convention) + "\nbackward:\n" +
             to_text(
                 halves.backward.graph.body(),
                 [&](const GraphBody&, size_t i) { return to_text(halves.backward.convention.inputs[i]); },
                 [&](const GraphBody&, size_t i) {  // gradients are of the forward's inputs
                   return to_text(halves.backward.convention.outputs[i], halves.forward.convention);
                 });
    }
    case StageName::loops: return to_text(lower(decompose(functionalize(program).graph.body()).body()));
  }
  unreachable();
}

RunResult run_program(const ExportedProgram& program, const std::vector<CallArg>& inputs, const RunOptions& options) {
  return run(functionalize(program, inputs), program, inputs, options);
}

ExportedProgram differentiate(const ExportedProgram& program, size_t of, const Wrt& wrt) {
  return to_exported(make_joint(functionalize(program), of, wrt), program);
}

}  // namespace tenon

#include <unistd.h>

#include <filesystem>

#include "tenon/export/serde/load.h"
#include "tenon/export/serde/save.h"
#include "tenon/rules/registry.h"
#include "tenon/trace/trace.h"
#include "tests/sweep/checks.h"

namespace tenon::sweep {
namespace {

Tree tuple_of(size_t leaves) {
  return {.type = "builtins.tuple", .context = "null", .children = std::vector<Tree>(leaves)};
}

// A program whose graph is this one call: every tensor is a user input, every result a user output.
ExportedProgram program_of(const Op& op, const Case& recorded) {
  ExportedProgram program;
  GraphBody& graph = program.graph.body();
  Tracer tracer(graph);
  CallArgs args;
  for (const CallArg& a : recorded.arguments(op))
    args.push_back(map_tensors<Tensor>(a, [&](const Tensor& t) -> Tensor {
      if (!t || t.meta().wrapped_number) return t;
      Value input = add_input(graph, "x", t.meta());
      program.signature.inputs.push_back({.arg = input, .name = graph.info(input).name});
      return tracer.tensor(input);
    }));
  tracer.call(op, args);
  Node& node = graph.nodes.back();
  node.given = recorded.given(op);
  for (size_t i = op.schema.args.size(); i-- > 0;)  // what stands before a positional argument is written too
    if (node.given >> i & 1 && !op.schema.args[i].keyword_only) {
      node.given |= (1ull << i) - 1;
      break;
    }
  for (const Arg& result : node.results)
    for_each_tensor(result, [&](const Value& v) {
      if (!v) return;
      graph.outputs.emplace_back(v);
      program.signature.outputs.push_back({.arg = v});
    });
  for (const auto& entry : graph.shapes.ranges.entries()) program.ranges.emplace_back(text(entry.symbol), entry.range);
  ModuleCallSignature signature;
  signature.in = {.type = "builtins.tuple",
                  .context = "null",
                  .children = {tuple_of(graph.inputs.size()), {.type = "builtins.dict", .context = "\"[]\""}}};
  signature.out = tuple_of(graph.outputs.size());
  program.module_calls.push_back({"", signature});
  return program;
}

}  // namespace

Outcome check_round_trip(const Op& op, const Case& recorded, bool through_file) {
  ExportedProgram program = program_of(op, recorded);
  ExportedProgram back;
  if (through_file) {
    std::string path = (std::filesystem::temp_directory_path() / text("tenon_sweep_", getpid(), ".pt2")).string();
    save_exported(program, path);
    back = load_exported(path, registry());
    std::filesystem::remove(path);
  } else {
    back = read_program(to_json(program), "model.json", registry());
  }
  std::string before = to_text(program.graph.body()), after = to_text(back.graph.body());
  if (before != after) return text("written as ", before, " and read as ", after);
  const Node &a = program.graph->nodes.back(), &b = back.graph->nodes.back();
  if (a.op != b.op) return text("read as a call of ", b.op->name());
  if (a.given != b.given) return text("the arguments given were ", a.given, " and are read as ", b.given);
  for (size_t i = 0; i < a.args.size(); ++i)
    if (!(a.args[i] == b.args[i]) && to_text(program.graph.body(), a.args[i]) != to_text(back.graph.body(), b.args[i]))
      return text("argument ", op.schema.args[i].name, " was ", to_text(program.graph.body(), a.args[i]),
                  " and is read as ", to_text(back.graph.body(), b.args[i]));
  return std::nullopt;
}

}  // namespace tenon::sweep

#include "tests/sweep/program_of.h"

#include "tenon/trace/trace.h"

namespace tenon::sweep {
namespace {

Tree tuple_of(size_t leaves) {
  return {.type = "builtins.tuple", .context = "null", .children = std::vector<Tree>(leaves)};
}

}  // namespace

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

}  // namespace tenon::sweep

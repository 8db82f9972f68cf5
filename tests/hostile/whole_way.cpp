#include "tests/hostile/whole_way.h"

#include "tenon/export/print.h"
#include "tenon/export/serde/load.h"
#include "tenon/export/serde/save.h"
#include "tenon/passes/check_metas.h"
#include "tenon/pipeline.h"
#include "tenon/rules/registry.h"
#include "tenon/sym/evaluate.h"

namespace tenon {
namespace {

// A value for each user input: sizes as the example inputs had them.
std::vector<CallArg> inputs_of(const ExportedProgram& program) {
  sym::Bindings hints;
  for (const auto& [name, value] : program.hints) hints.set(SymInt::symbol(name), value);
  std::vector<CallArg> out;
  for (const InputSpec& spec : program.signature.inputs) {
    const Value* v = spec.arg.get<Value>();
    if (!v) {
      out.push_back(map_tensors<Tensor>(spec.arg, [](Value) { return Tensor(); }));
      continue;
    }
    const ValueInfo& info = program.graph->info(*v);
    if (info.type == ValueType::floating) out.emplace_back(sym::evaluate_real(info.expr, hints));
    else if (info.type != ValueType::tensor) out.emplace_back(sym::evaluate(info.expr, hints));
    else {
      Sizes sizes;
      double elements = 1;
      for (SymInt e : info.meta.sizes) {
        sizes.push_back(sym::evaluate(e, hints));
        elements *= static_cast<double>(sizes.back().as_int());
      }
      require(elements >= 0 && elements <= 100'000, "too large to run here");
      Tensor t = Tensor::empty(info.meta.dtype, sizes);
      for (size_t i = 0; i < t.storage()->size(); ++i)
        t.mutable_bytes()[i] = static_cast<std::byte>(item_size(info.meta.dtype) == 1 ? i % 2 : (i * 7) % 64);
      if (is_integral(info.meta.dtype) && item_size(info.meta.dtype) > 1)  // small enough to be an index
        for (size_t i = 0; i < t.storage()->size(); ++i)
          t.mutable_bytes()[i] = static_cast<std::byte>(i % item_size(info.meta.dtype) == 0 ? i % 3 : 0);
      out.emplace_back(t);
    }
  }
  return out;
}

bool writes(const GraphBody& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op && node.op->writes()) return true;
    for (const Arg& arg : node.args)
      if (auto* inside = arg.get<Subgraph>(); inside && writes(*inside->body)) return true;
  }
  return false;
}

// A polynomial of degree 10^12, or a pool whose windows are so large, is a program that computes for hours, as it says.
// A degree that a graph computes, writes to, or that a graph within it is given, may be any.
bool computes_for_long(const GraphBody& graph, bool within = false) {
  for (const Node& node : graph.nodes)
    for (const Arg& arg : node.args) {
      if (auto* inside = arg.get<Subgraph>(); inside && computes_for_long(*inside->body, true)) return true;
      if (!node.op) continue;
      if (auto* windows = arg.get<Sizes>(); windows && node.op->name().find("pool") != std::string::npos)
        for (SymInt s : *windows)
          if (!s.is_int() || s.as_int() > 1'000'000) return true;
      if (node.op->name().find("polynomial") == std::string::npos) continue;
      if (auto* real = arg.get<double>(); real && *real > 1e6) return true;
      if (auto* number = arg.get<SymInt>(); number && (!number->is_int() || number->as_int() > 1'000'000)) return true;
      if (auto* v = arg.get<Value>(); v && *v && (within || graph.info(*v).producer != no_id)) return true;
      if (writes(graph)) return true;
    }
  return false;
}

template <class F>
bool reached(F&& stage) {
  try {
    stage();
    return true;
  } catch (const Error&) { return false; }
}

}  // namespace

Journey go_the_whole_way(std::string_view json) {
  Journey journey;
  std::optional<ExportedProgram> program;
  journey.read = reached([&] {
    program.emplace(read_program(json, "program", registry()));
    verify(*program);
  });
  if (!journey.read) return journey;
  journey.checked = reached([&] { check_metas(program->graph.body(), program->hints); });
  if (!journey.checked) return journey;
  to_text(*program);
  std::string written = to_json(*program);
  reached([&] { to_json(read_program(written, "written", registry())); });
  if (!missing_operators(*program).empty()) return journey;
  Wrt wrt = parse_wrt("inputs");
  Walk walk(*program, {.of = 0, .wrt = wrt, .inputs = {}});
  reached([&] { show(walk, StageName::normalized); });
  journey.functional = reached([&] { show(walk, StageName::functional); });
  journey.joint = reached([&] { show(walk, StageName::joint); });
  reached([&] { show(walk, StageName::partition); });
  reached([&] { to_json(differentiate(*program, 0, wrt)); });
  journey.lowered = reached([&] { show(walk, StageName::loops); });
  if (computes_for_long(program->graph.body())) return journey;
  journey.ran = reached([&] { run_program(*program, inputs_of(*program)); });
  return journey;
}

}  // namespace tenon

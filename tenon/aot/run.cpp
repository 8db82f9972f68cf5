#include "tenon/aot/run.h"

#include <algorithm>

#include "tenon/aot/guards.h"
#include "tenon/interp/eager.h"
#include "tenon/interp/run_graph.h"
#include "tenon/ops/random.h"

namespace tenon {
namespace {

// The argument a caller gave for a leaf that was specialized to a constant.
void require_constant(const CallArg& given, const CallArg& stored, const std::string& name) {
  if (given.is_none() || given == stored) return;
  auto number = [](const CallArg& a) -> std::optional<double> {
    if (auto* b = a.get<bool>()) return *b;
    if (auto* i = a.get<SymInt>(); i && i->is_int()) return static_cast<double>(i->as_int());
    if (auto* d = a.get<double>()) return *d;
    if (auto* t = a.get<Tensor>(); t && *t && t->numel() == SymInt(1)) return scalar_value(*t);
    return std::nullopt;
  };
  auto a = number(given), b = number(stored);
  require(a && b && *a == *b, "input ", name, ": the program was exported for the constant ", describe(stored),
          " and takes no other value, got ", describe(given));
}

CallArg as_number(const CallArg& given, const ValueInfo& info, const std::string& name) {
  if (auto* t = given.get<Tensor>(); t && *t && t->numel() == SymInt(1)) {
    if (info.type == ValueType::floating) return scalar_value(*t);
    require(!is_floating(t->dtype()), "input ", name, ": expected an integer, got ", t->meta());
    if (info.type == ValueType::boolean) return scalar_integer(*t) != 0;
    return scalar_integer(*t);
  }
  require(given.is_number(), "input ", name, ": expected a number, got ", describe(given));
  return given;
}

}  // namespace

RunResult run(const FunctionalProgram& functional, const ExportedProgram& program, const std::vector<CallArg>& inputs,
              const RunOptions& options) {
  interp::install();
  const CallingConvention& c = functional.convention;
  const GraphBody& graph = functional.graph.body();
  size_t tangents = 0;
  for (const InputMeaning& m : c.inputs) tangents += std::holds_alternative<input::Tangent>(m);
  require(inputs.size() == c.user_inputs.size() + tangents, "expected ", c.user_inputs.size() + tangents, " inputs (",
          join(c.user_names, ", "), "), got ", inputs.size());
  for (size_t i = 0; i < c.user_inputs.size(); ++i)
    if (!c.user_inputs[i].is_none()) require_constant(inputs[i], c.user_inputs[i], c.user_names[i]);

  std::vector<CallArg> bound;
  std::vector<std::string> names;
  size_t tangent = c.user_inputs.size();
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const InputMeaning& m = c.inputs[i];
    names.push_back(public_name(m));
    if (is_state(m)) {
      const NamedTensor* t = program.find_state(names.back());
      expect(t != nullptr, "the program has no ", names.back());
      bound.emplace_back(t->tensor);
    } else if (auto* u = std::get_if<input::User>(&m)) {
      const ValueInfo& info = graph.info(*graph.inputs[i].get<Value>());
      require(info.type != ValueType::tensor || options.absent_are_ones || !inputs[u->leaf].is_none(), "input ",
              u->name, ": expected a tensor, ", info.meta);
      bound.push_back(info.type == ValueType::tensor ? inputs[u->leaf] : as_number(inputs[u->leaf], info, u->name));
    } else if (std::holds_alternative<input::Tangent>(m)) {
      bound.push_back(inputs[tangent++]);
    } else if (std::holds_alternative<input::RngState>(m)) {
      bound.emplace_back(random_state(static_cast<int64_t>(options.seed), 0));
    } else {
      fail_internal(Check(false).at, text("an input that only other stages bind: ", to_text(m)));
    }
  }
  interp::bind_symbols(graph, bound, names);  // errors in the caller's terms
  check_guards(program, inputs);
  std::vector<CallArg> results = interp::run_graph(graph, bound);

  RunResult out;
  out.outputs = c.user_outputs;
  for (size_t i = 0; i < results.size(); ++i) {
    const OutputMeaning& m = c.outputs[i];
    if (auto* u = std::get_if<output::User>(&m)) out.outputs[u->leaf] = results[i];
    else if (auto* updated = std::get_if<output::Updated>(&m)) {
      const InputMeaning& of = c.inputs[updated->input];
      Tensor value = *results[i].get<Tensor>();
      if (auto* b = std::get_if<input::Buffer>(&of))
        for (const std::string& name : b->names) out.buffers.emplace_back(name, value);
      else if (auto* p = std::get_if<input::Parameter>(&of))
        for (const std::string& name : p->names) out.parameters.emplace_back(name, value);
      else if (std::holds_alternative<input::User>(of)) out.inputs.emplace_back(public_name(of), value);
    } else if (auto* g = std::get_if<output::Gradient>(&m)) {
      const InputMeaning& of = c.inputs[g->input];
      Tensor value = *results[i].get<Tensor>();
      if (auto* p = std::get_if<input::Parameter>(&of))
        for (const std::string& name : p->names) out.gradients.emplace_back(name, value);
      else out.gradients.emplace_back(public_name(of), value);
    }
  }
  return out;
}

}  // namespace tenon

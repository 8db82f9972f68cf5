#include "tests/text_program.h"

#include <algorithm>
#include <cstring>

#include "tenon/rules/registry.h"

namespace tenon {

ExportedProgram program_of(Graph graph) {
  ExportedProgram program;
  Tree arguments{"builtins.tuple", "", {}, {}}, results{"builtins.tuple", "", {}, {}};
  for (const Arg& input : graph->inputs) {
    ValueInfo& info = graph->info(*input.get<Value>());
    bool parameter = starts_with(info.name, "p_"), buffer = starts_with(info.name, "b_");
    if (!parameter && !buffer) {
      program.signature.inputs.push_back({InputKind::user_input, *input.get<Value>(), info.name, ""});
      arguments.children.emplace_back();
      continue;
    }
    std::string name = info.name.substr(2);
    info.meta.requires_grad = parameter;
    Tensor zeros = Tensor::empty(info.meta);
    std::memset(zeros.mutable_bytes(), 0, zeros.storage()->size());
    program.state.push_back({name, zeros, parameter});
    program.signature.inputs.push_back(
        {parameter ? InputKind::parameter : InputKind::buffer, *input.get<Value>(), info.name, name});
  }
  for (const Arg& output : graph->outputs) {
    program.signature.outputs.push_back({OutputKind::user_output, output, ""});
    results.children.emplace_back();
  }
  Tree keywords{"builtins.dict", "", {}, {}};
  program.module_calls.push_back(
      {"", ModuleCallSignature{.in = {"builtins.tuple", "", {}, {arguments, keywords}}, .out = results}});
  program.graph = std::move(graph);
  return program;
}

ExportedProgram program_of(std::string_view graph) { return program_of(parse_graph(graph, registry())); }

Tensor floats(Sizes sizes, std::initializer_list<float> values) {
  Tensor t = Tensor::empty(DType::f32, std::move(sizes));
  std::copy(values.begin(), values.end(), t.mutable_data<float>());
  return t;
}

Tensor counting(Sizes sizes) {
  Tensor t = Tensor::empty(DType::f32, std::move(sizes));
  for (int64_t i = 0; i < t.numel().as_int(); ++i) t.mutable_data<float>()[i] = static_cast<float>(i);
  return t;
}

Tensor integers(Sizes sizes, std::initializer_list<int64_t> values) {
  Tensor t = Tensor::empty(DType::i64, std::move(sizes));
  std::copy(values.begin(), values.end(), t.mutable_data<int64_t>());
  return t;
}

std::vector<float> values_of(const Tensor& t) {
  Tensor dense = contiguous_copy(t);
  return std::vector<float>(dense.data<float>(), dense.data<float>() + dense.numel().as_int());
}

bool has_no_gradient(std::string_view path) {
  return path.ends_with("/q_last_operators.pt2") || path.ends_with("/q_weights_of_4_bits.pt2");
}

}  // namespace tenon

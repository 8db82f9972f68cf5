#include "tenon/export/exported_program.h"

namespace tenon {

ExportedProgram::ExportedProgram() = default;
ExportedProgram::ExportedProgram(ExportedProgram&&) noexcept = default;
ExportedProgram& ExportedProgram::operator=(ExportedProgram&&) noexcept = default;
ExportedProgram::~ExportedProgram() = default;

ExportedProgram ExportedProgram::copy() const {
  ExportedProgram out;
  out.graph = graph.copy();
  out.signature = signature;
  out.state = state;
  out.constants = constants;
  out.opaque = opaque;
  out.module_calls = module_calls;
  out.ranges = ranges;
  out.guards = guards;
  out.dialect = dialect;
  out.torch_version = torch_version;
  out.schema_major = schema_major;
  out.schema_minor = schema_minor;
  out.metadata = metadata;
  out.namedtuple_fields = namedtuple_fields;
  out.opset_version = opset_version;
  out.extra_files = extra_files;
  out.hints = hints;
  out.samples = samples;
  out.check_payloads = check_payloads;
  return out;
}

std::string_view name(InputKind kind) {
  switch (kind) {
    case InputKind::user_input: return "USER_INPUT";
    case InputKind::parameter: return "PARAMETER";
    case InputKind::buffer: return "BUFFER";
    case InputKind::constant_tensor: return "CONSTANT_TENSOR";
    case InputKind::custom_object: return "CUSTOM_OBJ";
    case InputKind::token: return "TOKEN";
  }
  unreachable();
}

std::string_view name(OutputKind kind) {
  switch (kind) {
    case OutputKind::user_output: return "USER_OUTPUT";
    case OutputKind::loss_output: return "LOSS_OUTPUT";
    case OutputKind::buffer_mutation: return "BUFFER_MUTATION";
    case OutputKind::parameter_mutation: return "PARAMETER_MUTATION";
    case OutputKind::user_input_mutation: return "USER_INPUT_MUTATION";
    case OutputKind::gradient_to_parameter: return "GRADIENT_TO_PARAMETER";
    case OutputKind::gradient_to_user_input: return "GRADIENT_TO_USER_INPUT";
    case OutputKind::token: return "TOKEN";
  }
  unreachable();
}

const NamedTensor* ExportedProgram::find_state(std::string_view wanted) const {
  for (const auto* list : {&state, &constants})
    for (const NamedTensor& t : *list)
      if (t.name == wanted) return &t;
  return nullptr;
}

StateIndex::StateIndex(const ExportedProgram& program) {
  for (const auto* list : {&program.state, &program.constants})
    for (const NamedTensor& t : *list) by_name_.try_emplace(t.name, &t);
}

const NamedTensor* StateIndex::find(std::string_view name) const {
  auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Tensor StateIndex::tensor_of(const InputSpec& spec) const {
  const NamedTensor* found = find(spec.target);
  expect(found != nullptr, "no tensor ", quoted(spec.target), " in the program's state");
  return found->tensor;
}

Tensor ExportedProgram::tensor_of(const InputSpec& spec) const {
  // A buffer that is not persistent and a parameter may bear the same name in a damaged file only; the verifier sees to
  // that.
  const NamedTensor* found = find_state(spec.target);
  expect(found != nullptr, "no tensor ", quoted(spec.target), " in the program's state");
  return found->tensor;
}

}  // namespace tenon

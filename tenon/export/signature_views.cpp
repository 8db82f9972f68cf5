#include "tenon/export/signature_views.h"

#include <algorithm>

namespace tenon {
namespace {

std::string value_name(const Arg& arg, const GraphBody& graph) {
  auto* v = arg.get<Value>();
  return v && *v ? graph.info(*v).name : std::string();
}

std::string words_of(const Tree& tree) {
  if (tree.is_leaf()) return "*";
  std::string out = text(std::string_view(tree.type).substr(tree.type.rfind('.') + 1), "(");
  for (size_t i = 0; i < tree.children.size(); ++i)
    out += text(i ? ", " : "", i < tree.keys.size() ? tree.keys[i] + ": " : "", words_of(tree.children[i]));
  return out + ")";
}

void check_leaf(const CallArg& leaf, const Arg& input, const InputSpec& spec, const GraphBody& graph) {
  auto* v = input.get<Value>();
  if (!v) {  // specialized to a constant
    require(leaf == map_tensors<Tensor>(input, [](const Value&) { return Tensor(); }), "sample input ",
            quoted(spec.name), ": expected the constant the program was exported with, ", to_text(graph, input));
    return;
  }
  const ValueInfo& info = graph.info(*v);
  if (info.type != ValueType::tensor) {
    require(leaf.is_number(), "sample input ", quoted(spec.name), ": expected a number, got something else");
    return;
  }
  auto* t = leaf.get<Tensor>();
  require(t && *t, "sample input ", quoted(spec.name), ": expected a tensor, ", info.meta);
  bool fits = t->dtype() == info.meta.dtype && t->rank() == info.meta.rank();
  for (size_t d = 0; fits && d < t->rank(); ++d)
    fits = !info.meta.sizes[d].is_int() || info.meta.sizes[d] == t->sizes()[d];
  require(fits, "sample input ", quoted(spec.name), ": expected ", info.meta, ", got ", t->meta());
}

}  // namespace

SignatureViews views_of(const ExportedProgram& program) {
  SignatureViews out;
  const GraphBody& graph = program.graph.body();
  for (const InputSpec& spec : program.signature.inputs) {
    switch (spec.kind) {
      case InputKind::user_input: out.user_inputs.push_back(spec.arg); break;
      case InputKind::parameter:
        out.parameters.push_back(spec.target);
        out.inputs_to_parameters.emplace_back(spec.name, spec.target);
        break;
      case InputKind::buffer:
        out.buffers.push_back(spec.target);
        if (!spec.persistent) out.non_persistent_buffers.push_back(spec.target);
        out.inputs_to_buffers.emplace_back(spec.name, spec.target);
        break;
      case InputKind::constant_tensor:
        out.lifted_tensor_constants.push_back(spec.target);
        out.inputs_to_lifted_tensor_constants.emplace_back(spec.name, spec.target);
        break;
      case InputKind::custom_object:
        out.lifted_custom_objs.push_back(spec.target);
        out.inputs_to_lifted_custom_objs.emplace_back(spec.name, spec.target);
        break;
      case InputKind::token: out.input_tokens.push_back(spec.name); break;
    }
  }
  BackwardSignature backward;
  size_t losses = 0;
  for (const OutputSpec& spec : program.signature.outputs) {
    std::string output = value_name(spec.arg, graph);
    switch (spec.kind) {
      case OutputKind::loss_output:
        ++losses;
        backward.loss_output = output;
        [[fallthrough]];
      case OutputKind::user_output: out.user_outputs.push_back(spec.arg); break;
      case OutputKind::buffer_mutation: out.buffers_to_mutate.emplace_back(output, spec.target); break;
      case OutputKind::parameter_mutation: out.parameters_to_mutate.emplace_back(output, spec.target); break;
      case OutputKind::user_input_mutation: out.user_inputs_to_mutate.emplace_back(output, spec.target); break;
      case OutputKind::gradient_to_parameter: backward.gradients_to_parameters.emplace_back(output, spec.target); break;
      case OutputKind::gradient_to_user_input:
        backward.gradients_to_user_inputs.emplace_back(output, spec.target);
        break;
      case OutputKind::token: out.output_tokens.push_back(output); break;
    }
  }
  require(losses <= 1, "the signature has ", losses, " loss outputs, expected one at most");
  if (losses == 1) out.backward_signature = std::move(backward);
  return out;
}

void rename_value(ExportedProgram& program, const std::string& from, const std::string& to) {
  GraphBody& graph = program.graph.body();
  require(!to.empty() && !graph.names.contains(to), "cannot rename ", quoted(from), " to ", quoted(to),
          ": that name is taken");
  size_t found = 0;
  for (ValueInfo& info : graph.values)
    if (info.name == from) info.name = to, ++found;
  for (Node& node : graph.nodes)
    if (node.origin.name == from) node.origin.name = to;
  for (InputSpec& spec : program.signature.inputs)
    if (spec.name == from) spec.name = to, ++found;
  for (OutputSpec& spec : program.signature.outputs) {
    bool of_input = spec.kind == OutputKind::user_input_mutation || spec.kind == OutputKind::gradient_to_user_input;
    if (of_input && spec.target == from) spec.target = to;
  }
  require(found > 0, "there is no value ", quoted(from), " to be renamed");
  graph.names.erase(from);
  graph.names.try_emplace(to, 1);
}

void set_samples(ExportedProgram& program, SampleInputs samples) {
  require(equivalent(samples.tree, program.in_tree()), "the sample inputs are arranged as ", words_of(samples.tree),
          ", the program's arguments as ", words_of(program.in_tree()));
  size_t leaf = 0;
  for (size_t i = 0; i < program.signature.inputs.size(); ++i) {
    const InputSpec& spec = program.signature.inputs[i];
    if (spec.kind != InputKind::user_input) continue;
    require(leaf < samples.leaves.size(), "expected a sample for input ", quoted(spec.name), ", got ",
            samples.leaves.size(), " in all");
    check_leaf(samples.leaves[leaf++], program.graph->inputs[i], spec, program.graph.body());
  }
  require(leaf == samples.leaves.size(), "expected ", leaf, " sample inputs, got ", samples.leaves.size());
  program.samples = [kept = std::move(samples)]() -> std::optional<SampleInputs> { return kept; };
}

bool equivalent(const Tree& a, const Tree& b) {
  auto plain = [](const std::string& type) {  // torch.fx has containers of its own that nothing changes
    if (type == "torch.fx.immutable_collections.immutable_list") return std::string("builtins.list");
    if (type == "torch.fx.immutable_collections.immutable_dict") return std::string("builtins.dict");
    return type;
  };
  return plain(a.type) == plain(b.type) && a.keys == b.keys && a.children.size() == b.children.size() &&
         std::equal(a.children.begin(), a.children.end(), b.children.begin(), equivalent);
}

}  // namespace tenon

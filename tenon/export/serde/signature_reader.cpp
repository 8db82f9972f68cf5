#include "tenon/export/serde/signature_reader.h"

#include "tenon/export/serde/codes.h"
#include "tenon/export/serde/tree_spec.h"

namespace tenon::serde {
namespace {

Value find_value(Json name, const Names& names) {
  auto found = names.find(name.as_string());
  name.require(found != names.end(), "names the value ", quoted(name.as_string()), ", which the graph does not define");
  return found->second;
}

// Parameters, buffers and constants: {"arg": {"name": ...}, "<kind>_name": target}.
void read_state_input(InputSpec& spec, Json content, std::string_view target_key, const Names& names) {
  Json name = content.at("arg").at("name");
  spec.arg = find_value(name, names);
  spec.name = name.as_string();
  spec.target = content.at(target_key).as_string();
}

InputSpec read_input(Json json, const GraphBody& graph, const Names& names) {
  auto [key, content] = read_union(json);
  InputSpec spec;
  if (key == "user_input") {
    spec.arg = read_reference(content.at("arg"), names);
    if (auto* value = spec.arg.get<Value>()) spec.name = graph.info(*value).name;
  } else if (key == "constant_input") {
    spec.arg = read_constant(content.at("value"));
    spec.name = read_name(content.at("name"));
  } else if (key == "parameter") {
    spec.kind = InputKind::parameter;
    read_state_input(spec, content, "parameter_name", names);
  } else if (key == "buffer") {
    spec.kind = InputKind::buffer;
    read_state_input(spec, content, "buffer_name", names);
    spec.persistent = content.at("persistent").as_bool();
  } else if (key == "tensor_constant") {
    spec.kind = InputKind::constant_tensor;
    read_state_input(spec, content, "tensor_constant_name", names);
  } else if (key == "custom_obj") {
    spec.kind = InputKind::custom_object;
    read_state_input(spec, content, "custom_obj_name", names);
  } else if (key == "token") {
    spec.kind = InputKind::token;
    Json name = content.at("arg").at("name");
    spec.arg = find_value(name, names);
    spec.name = name.as_string();
  } else {
    json.fail("expected the kind of an input, found ", quoted(key));
  }
  return spec;
}

struct OutputForm {
  std::string_view key;
  OutputKind kind;
  std::string_view target_key;
};
constexpr OutputForm output_forms[] = {
    {"buffer_mutation", OutputKind::buffer_mutation, "buffer_name"},
    {"parameter_mutation", OutputKind::parameter_mutation, "parameter_name"},
    {"user_input_mutation", OutputKind::user_input_mutation, "user_input_name"},
    {"gradient_to_parameter", OutputKind::gradient_to_parameter, "parameter_name"},
    {"gradient_to_user_input", OutputKind::gradient_to_user_input, "user_input_name"},
};

OutputSpec read_output(Json json, const Names& names) {
  auto [key, content] = read_union(json);
  OutputSpec spec;
  if (key == "user_output") {
    spec.arg = read_reference(content.at("arg"), names);
    return spec;
  }
  if (key == "loss_output") {
    spec.kind = OutputKind::loss_output;
    spec.arg = find_value(content.at("arg").at("name"), names);
    return spec;
  }
  for (const OutputForm& form : output_forms) {
    if (key != form.key) continue;
    spec.kind = form.kind;
    spec.arg = find_value(content.at("arg").at("name"), names);
    spec.target = content.at(form.target_key).as_string();
    return spec;
  }
  if (key == "token") {
    spec.kind = OutputKind::token;
    spec.arg = find_value(content.at("arg").at("name"), names);
    return spec;
  }
  json.fail("expected the kind of an output, found ", quoted(key));
}

// NaN constants are equal here: both come from one file.
bool same(const Arg& a, const Arg& b) {
  auto *x = a.get<double>(), *y = b.get<double>();
  if (x && y && *x != *x && *y != *y) return true;
  return a == b;
}

}  // namespace

Signature read_signature(Json json, const GraphBody& graph, const Names& names) {
  Signature signature;
  Json inputs = json.at("input_specs");
  Json outputs = json.at("output_specs");
  inputs.require(inputs.size() == graph.inputs.size(), "the graph has ", graph.inputs.size(), " inputs, the signature ",
                 inputs.size());
  outputs.require(outputs.size() == graph.outputs.size(), "the graph has ", graph.outputs.size(),
                  " outputs, the signature ", outputs.size());
  for (Json input : inputs.items()) {
    InputSpec spec = read_input(input, graph, names);
    size_t at = signature.inputs.size();
    if (!same(spec.arg, graph.inputs[at]))
      input.fail("input ", at, " of the graph is ", to_text(graph, graph.inputs[at]), ", but the signature speaks of ",
                 to_text(graph, spec.arg));
    signature.inputs.push_back(std::move(spec));
  }
  for (Json output : outputs.items()) {
    OutputSpec spec = read_output(output, names);
    size_t at = signature.outputs.size();
    if (!same(spec.arg, graph.outputs[at]))
      output.fail("output ", at, " of the graph is ", to_text(graph, graph.outputs[at]),
                  ", but the signature speaks of ", to_text(graph, spec.arg));
    signature.outputs.push_back(std::move(spec));
  }
  return signature;
}

std::vector<ModuleCallEntry> read_module_calls(Json entries, const Names& names) {
  std::vector<ModuleCallEntry> out;
  for (Json json : entries.items()) {
    ModuleCallEntry entry{.fqn = std::string(json.at("fqn").as_string())};
    if (auto given = json.given("signature")) {
      ModuleCallSignature signature;
      for (Json input : given->at("inputs").items()) signature.inputs.push_back(read_reference(input, names));
      for (Json output : given->at("outputs").items()) signature.outputs.push_back(read_reference(output, names));
      signature.in = parse_tree_spec(given->at("in_spec"));
      signature.out = parse_tree_spec(given->at("out_spec"));
      if (auto arg_names = given->given("forward_arg_names")) {
        signature.forward_arg_names.emplace();
        for (Json name : arg_names->items()) signature.forward_arg_names->emplace_back(name.as_string());
      }
      entry.signature = std::move(signature);
    }
    out.push_back(std::move(entry));
  }
  entries.require(!out.empty() && out[0].fqn.empty() && out[0].signature,
                  "expected the program's own signature as the first entry");
  return out;
}

}  // namespace tenon::serde

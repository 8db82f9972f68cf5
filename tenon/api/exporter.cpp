#include "tenon/api/exporter.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "tenon/api/call.h"
#include "tenon/autograd/record.h"
#include "tenon/export/spell_sizes.h"
#include "tenon/passes/grad_regions.h"
#include "tenon/rules/registry.h"

namespace tenon::v0::detail {
namespace {

// As PyTorch names placeholders: lower case, other signs than letters and digits as _.
std::string identifier(std::string name) {
  for (char& c : name) {
    unsigned char sign = static_cast<unsigned char>(c);
    c = std::isalnum(sign) ? static_cast<char>(std::tolower(sign)) : '_';
  }
  return name;
}

// tenon::v0::nn::Linear as tenon.nn.Linear.
std::string type_name(const char* type) {
  int status = 0;
  char* plain = abi::__cxa_demangle(type, nullptr, nullptr, &status);
  std::string out = status == 0 ? plain : type;
  std::free(plain);
  for (size_t at; (at = out.find("v0::")) != out.npos;) out.erase(at, 4);
  for (size_t at; (at = out.find("::")) != out.npos;) out.replace(at, 2, ".");
  for (char& c : out)
    if (c == ',' || c == ';') c = ' ';  // which part the entries of a stack
  return out;
}

tenon::TensorMeta clean(tenon::TensorMeta meta) {
  meta.requires_grad = meta.wrapped_number = false;
  meta.offset = 0;
  return meta;
}

tenon::NodeMetadata module_stack(std::string stack) {
  tenon::NodeMetadata out;
  out.edit().emplace_back("nn_module_stack", std::move(stack));
  return out;
}

// The modules that both stacks begin with.
std::string shared_modules(const std::string& a, const std::string& b) {
  std::vector<std::string> left = tenon::split(a, ';'), right = tenon::split(b, ';');
  left.erase(std::mismatch(left.begin(), left.end(), right.begin(), right.end()).first, left.end());
  return tenon::join(left, ";");
}

// Nodes that compute sizes belong to the modules that the nodes around them share: for torch.export.unflatten, a module
// that is left for one and entered again would be called twice.
void place_in_modules(std::vector<tenon::Node>& nodes, const std::string& root) {
  auto placed = [](const tenon::Node& node) { return !node.origin.metadata->empty(); };
  auto stack = [](const tenon::Node& node) { return node.origin.metadata->front().second; };
  std::string before = root;
  for (auto node = nodes.begin(); node != nodes.end(); ++node) {
    if (placed(*node)) {
      before = stack(*node);
      continue;
    }
    auto after = std::find_if(node, nodes.end(), placed);
    node->origin.metadata = module_stack(after == nodes.end() ? root : shared_modules(before, stack(*after)));
  }
}

const char* prefix(tenon::InputKind kind) {
  switch (kind) {
    case tenon::InputKind::parameter: return "p_";
    case tenon::InputKind::buffer: return "b_";
    case tenon::InputKind::constant_tensor: return "c_";
    case tenon::InputKind::user_input: return "";
    case tenon::InputKind::custom_object: return "obj_";
    case tenon::InputKind::token: return "token";
  }
  tenon::unreachable();
}

}  // namespace

Exporter::Exporter(const ExportOptions& options, ExampleSizes& sizes)
    : options_(options), sizes_(sizes), tracer_(graph_.body()) {
  frames_.push_back({"L__self__", "", options.type.empty() ? "forward" : type_name(options.type.c_str())});
  set_origin();
  for (const auto& [name, tensor] : options.parameters) add_state(tenon::InputKind::parameter, name, tensor);
  for (const auto& [name, tensor] : options.buffers) add_state(tenon::InputKind::buffer, name, tensor);
  for (const auto& [name, tensor] : options.constants)
    constant_names_.emplace(Access::unwrap(tensor, "a constant").impl(), name);
}

void Exporter::add_state(tenon::InputKind kind, const std::string& name, const Tensor& tensor) {
  const tenon::Tensor& own = Access::unwrap(tensor, "a parameter or buffer");
  tenon::require(!lifted_.contains(own.impl()), "export_program: the tensor ", tenon::quoted(name, 100),
                 " is given under another name already");
  lift(kind, name, own);
}

Tensor Exporter::add_input(const std::string& name, tenon::TensorMeta meta) {
  tenon::Value value = tenon::add_input(graph_.body(), identifier(name), clean(std::move(meta)));
  inputs_.push_back({tenon::InputKind::user_input, value, graph_->info(value).name, ""});
  return Access::wrap(tracer_.tensor(value));
}

void Exporter::enter(const void* module, const char* type) {
  Frame frame = frames_.back();
  std::string path = options_.module_name ? options_.module_name(module) : std::string();
  if (!path.empty()) {  // else the model itself, or a module that is no part of it
    int before = calls_[path]++;
    frame = {tenon::text("L__self__", path, before ? "@" : "", before ? tenon::text(before) : ""), path,
             type_name(type)};
  }
  frames_.push_back(std::move(frame));
  if (!path.empty()) preserved();
  set_origin();
}

Exporter::PreservedCall* Exporter::preserved() {
  const Frame& frame = frames_.back();
  const std::vector<std::string>& wanted = options_.preserve_module_call_signature;
  if (frame.path.empty() || std::find(wanted.begin(), wanted.end(), frame.path) == wanted.end()) return nullptr;
  size_t at = frame.key.rfind('@');
  std::string number = at == frame.key.npos ? "" : frame.key.substr(at);
  auto same = [&](const PreservedCall& call) { return call.path == frame.path && call.number == number; };
  auto found = std::find_if(preserved_.begin(), preserved_.end(), same);
  if (found == preserved_.end()) found = preserved_.insert(found, {frame.path, number, {}, {}});
  return &*found;
}

std::vector<tenon::Value> Exporter::values(TensorList tensors) {
  std::vector<tenon::Value> out;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& each = tensors.data()[i];
    out.push_back(each ? tracer_.value(as_traced(Access::unwrap(each))) : tenon::Value());
  }
  return out;
}

void Exporter::takes(TensorList inputs) {
  if (PreservedCall* call = preserved()) call->inputs = values(inputs);
}

void Exporter::gives(TensorList results) {
  if (PreservedCall* call = preserved()) call->results = values(results);
}

void Exporter::leave() {
  if (frames_.size() > 1) frames_.pop_back();
  set_origin();
}

void Exporter::set_origin() {
  std::vector<std::string> stack;
  for (size_t i = 0; i < frames_.size(); ++i)
    if (i == 0 || frames_[i].key != frames_[i - 1].key)
      stack.push_back(tenon::text(frames_[i].key, ",", frames_[i].path, ",", frames_[i].type));
  tracer_.metadata = module_stack(tenon::join(stack, ";"));
}

void Exporter::made(const tenon::Tensor& tensor) {
  made_.insert(tensor.impl());
  kept_.push_back(tensor);
}

tenon::CallResults Exporter::run(const tenon::Op& op, tenon::CallArgs args) {
  sizes_.at(std::string(op.name()));
  for (size_t i = 0; i < args.size(); ++i) {
    args[i] = tenon::map_tensors<tenon::Tensor>(args[i], [&](const tenon::Tensor& t) {
      bool writes = i < op.schema.args.size() && op.schema.args[i].writes;
      bool constant = t && !t.is_traced() && !lifted_.contains(t.impl()) && !made_.contains(t.impl());
      tenon::require(!writes || !constant, "export_program: ", op.name(), " writes ", t.meta(),
                     ", which is neither an input nor made by forward; give it as a buffer");
      return as_traced(t);
    });
  }
  tenon::CallResults results = tracer_.call(op, std::move(args));
  sizes_.at("");
  return results;
}

tenon::Tensor Exporter::as_traced(const tenon::Tensor& t) {
  if (!t || t.is_traced() || t.meta().wrapped_number) return t;
  auto found = lifted_.find(t.impl());
  if (found == lifted_.end()) {
    auto named = constant_names_.find(t.impl());
    std::string path = frames_.back().path;
    kept_.push_back(t);
    lift(tenon::InputKind::constant_tensor,
         named != constant_names_.end() ? named->second
                                        : tenon::text(path, path.empty() ? "" : ".", "lifted_tensor_", nameless_++),
         t);
    found = lifted_.find(t.impl());
    if (made_.contains(t.impl())) {  // each run of forward makes it anew: what writes it must not write the constant
      tenon::CallResults copy = tracer_.call(operator_named("aten::lift_fresh_copy"), {tracer_.tensor(found->second)});
      found->second = {copy[0].as<tenon::Tensor>().impl()->value};
    }
  }
  return tracer_.tensor(found->second);
}

void Exporter::lift(tenon::InputKind kind, const std::string& target, const tenon::Tensor& t) {
  tenon::TensorMeta meta = clean(t.meta());
  tenon::Tensor own = t.with_meta(t.meta());
  bool is_parameter = kind == tenon::InputKind::parameter;
  meta.requires_grad = is_parameter && tenon::autograd::requires_grad(t);
  own.impl()->meta.requires_grad = meta.requires_grad;
  tenon::Value value = tenon::add_input(graph_.body(), prefix(kind) + identifier(target), meta);
  lifted_.emplace(t.impl(), value);
  bool is_constant = kind == tenon::InputKind::constant_tensor;
  bool persistent = std::find(options_.non_persistent.begin(), options_.non_persistent.end(), target) ==
                    options_.non_persistent.end();
  (is_constant ? constants_ : state_).push_back({kind, value, graph_->info(value).name, target, persistent});
  (is_constant || !persistent ? constant_tensors_ : tensors_).push_back({target, own, is_parameter});
}

void Exporter::add_results(const std::vector<Tensor>& results) {
  for (const Tensor& result : results)
    graph_->outputs.emplace_back(tracer_.value(as_traced(Access::unwrap(result, "a result of forward"))));
}

void Exporter::check(const std::vector<ExampleSizes::Probe>& probes) const {
  for (const ExampleSizes::Probe& probe : probes) {
    bool open = false;  // a size that only a run can tell has come up
    auto number = [&](tenon::SymInt e) -> tenon::SymInt {
      for (tenon::SymInt symbol : tenon::sym::symbols_of(e)) open = open || !probe.sizes.find(symbol);
      return open || !e.is_integer_typed() ? e : tenon::SymInt(tenon::sym::evaluate(e, probe.sizes));
    };
    tenon::Graph scratch;
    tenon::Tracer tracer(scratch.body());
    std::vector<tenon::Tensor> tensors(graph_->values.size());
    for (const tenon::Arg& input : graph_->inputs) {
      tenon::Value v = *input.get<tenon::Value>();
      tenon::TensorMeta meta = graph_->values[v.id].meta;
      for (tenon::SymInt& size : meta.sizes) size = number(size);
      for (tenon::SymInt& stride : meta.strides) stride = number(stride);
      tensors[v.id] = tracer.tensor(tenon::add_input(scratch.body(), "x", meta));
    }
    for (const tenon::Node& node : graph_->nodes) {
      tenon::CallArgs args;
      for (const tenon::Arg& arg : node.args) {
        if (auto* v = arg.get<tenon::Value>(); v && *v && graph_->values[v->id].type != tenon::ValueType::tensor) {
          args.emplace_back(number(graph_->values[v->id].expr));
          continue;
        }
        tenon::CallArg at = tenon::map_tensors<tenon::Tensor>(
            arg, [&](const tenon::Value& v) { return v ? tensors[v.id] : tenon::none; });
        if (auto* size = at.get<tenon::SymInt>()) at = number(*size);
        else if (auto* list = at.get<tenon::Sizes>()) {
          tenon::Sizes sizes = *list;
          for (tenon::SymInt& each : sizes) each = number(each);
          at = std::move(sizes);
        }
        args.push_back(std::move(at));
      }
      if (open) break;
      tenon::CallResults results;
      try {
        results = tracer.run(*node.op, std::move(args));
      } catch (const tenon::Error& e) { tenon::fail("export_program: not for ", probe.what, ": ", e.what()); }
      for (size_t i = 0; i < node.results.size(); ++i) {
        if (auto* list = node.results[i].get<std::vector<tenon::Value>>()) {
          const auto& made = results[i].as<std::vector<tenon::Tensor>>();
          tenon::require(made.size() == list->size(), "export_program: not for ", probe.what, ": ", node.op->name(),
                         " gives ", made.size(), " tensors there, and ", list->size(), " for the example");
          for (size_t k = 0; k < list->size(); ++k) tensors[(*list)[k].id] = made[k];
        } else if (auto* v = node.results[i].get<tenon::Value>(); v && *v && results[i].is<tenon::Tensor>()) {
          tensors[v->id] = results[i].as<tenon::Tensor>();
        }
      }
    }
  }
}

// Signatures in the place of the modules' entries, and entries for further calls. The values are those that stand
// behind the results of the graph.
void Exporter::add_preserved_calls(tenon::ExportedProgram& program, std::span<const tenon::Arg> values) const {
  auto taken = [&](const std::vector<tenon::Value>& of) {
    tenon::Args out;
    for (const tenon::Value& value : of) {
      if (!value) {
        out.emplace_back();
        continue;
      }
      out.push_back(values.front());
      values = values.subspan(1);
    }
    return out;
  };
  std::vector<std::string> parts = options_.modules;
  std::erase(parts, "");
  for (const std::string& path : options_.preserve_module_call_signature)
    tenon::require(std::find(parts.begin(), parts.end(), path) != parts.end(),
                   "export_program: preserve_module_call_signature: the model has no module ", tenon::quoted(path, 100),
                   "; it has ", tenon::join(parts, ", "));
  for (const PreservedCall& call : preserved_) {
    tenon::require(call.inputs && call.results, "export_program: preserve_module_call_signature: the scope of ",
                   tenon::quoted(call.path, 100), " does not say what it ", call.inputs ? "gives" : "takes",
                   "; write nn::Scope scope(*this, x) and return scope.result(y)");
    tenon::ModuleCallSignature signature{.inputs = taken(*call.inputs), .outputs = taken(*call.results)};
    tenon::Tree arguments{"builtins.tuple", "", {}, std::vector<tenon::Tree>(call.inputs->size())};
    signature.in = {"builtins.tuple", "", {}, {arguments, tenon::Tree{"builtins.dict", "", {}, {}}}};
    size_t results = call.results->size();
    if (results != 1) signature.out = {"builtins.tuple", "", {}, std::vector<tenon::Tree>(results)};
    auto entry = std::find_if(program.module_calls.begin(), program.module_calls.end(),
                              [&](const tenon::ModuleCallEntry& each) { return each.fqn == call.path + call.number; });
    if (entry == program.module_calls.end()) entry = program.module_calls.insert(entry, {call.path + call.number, {}});
    entry->signature = std::move(signature);
  }
}

tenon::ExportedProgram Exporter::finish(const std::vector<std::string>& names) {
  tenon::ExportedProgram out;
  tenon::Args ordered;
  for (const std::vector<tenon::InputSpec>* list : {&state_, &constants_, &inputs_})
    for (const tenon::InputSpec& spec : *list) {
      out.signature.inputs.push_back(spec);
      ordered.push_back(spec.arg);
    }
  graph_->inputs = std::move(ordered);
  size_t results = graph_->outputs.size();
  for (const PreservedCall& call : preserved_)  // further results, so that the passes keep track of them
    for (const auto* list : {&call.inputs, &call.results})
      for (const tenon::Value& value : list->value_or(std::vector<tenon::Value>()))
        if (value) graph_->outputs.emplace_back(value);
  tenon::Tree arguments{"builtins.tuple", "", {}, std::vector<tenon::Tree>(inputs_.size())};
  tenon::Tree keywords{"builtins.dict", "", {}, {}}, returned;
  if (results != 1) returned = {"builtins.tuple", "", {}, std::vector<tenon::Tree>(results)};
  tenon::ModuleCallSignature call{.in = {"builtins.tuple", "", {}, {arguments, keywords}}, .out = returned};
  call.forward_arg_names = names;
  out.module_calls.push_back({"", std::move(call)});
  for (const std::string& module : options_.modules)
    if (!module.empty()) out.module_calls.push_back({module, std::nullopt});
  out.state = std::move(tensors_);
  out.constants = std::move(constant_tensors_);
  out.torch_version = "2.15.0";
  out.opset_version = {{"aten", 10}};
  out.graph = std::move(graph_);
  sizes_.finish(out);
  tenon::sym::ShapeEnv shapes = out.graph->shapes;
  tenon::Graph spelled = tenon::spell_sizes(out.graph.body(), tenon::registry());
  place_in_modules(spelled->nodes, tenon::text("L__self__,,", frames_[0].type));
  out.graph = tenon::make_grad_regions(spelled.body());
  out.graph->shapes = std::move(shapes);
  add_preserved_calls(out, std::span(out.graph->outputs).subspan(results));
  out.graph->outputs.resize(results);
  for (size_t i = 0; i < out.signature.inputs.size(); ++i) out.signature.inputs[i].arg = out.graph->inputs[i];
  for (const tenon::Arg& output : out.graph->outputs)
    out.signature.outputs.push_back({tenon::OutputKind::user_output, output, ""});
  return out;
}

}  // namespace tenon::v0::detail

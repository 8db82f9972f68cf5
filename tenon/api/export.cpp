#include <tenon/export.h>

#include <cctype>
#include <unordered_map>

#include "tenon/api/access.h"
#include "tenon/autograd/record.h"
#include "tenon/export/exported_program.h"
#include "tenon/interp/eager.h"
#include "tenon/passes/check_metas.h"
#include "tenon/trace/trace.h"

namespace tenon::v0 {

using detail::Access;
using detail::guarded;

namespace {

std::string identifier(std::string name) {
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

/// Makes nodes of the calls of forward. Tensors with elements become inputs of the graph when they are met.
class Exporter : public tenon::Dispatcher {
 public:
  Exporter() : tracer_(graph_.body()) {}

  void add_state(tenon::InputKind kind, const std::string& name, const Tensor& tensor) {
    const tenon::Tensor& own = Access::unwrap(tensor, "a parameter or buffer");
    tenon::require(!lifted_.contains(own.impl()), "export_program: the tensor ", tenon::quoted(name, 100),
                   " is given under another name already");
    lift(kind, name, (kind == tenon::InputKind::parameter ? "p_" : "b_") + identifier(name), own);
  }

  Tensor add_input(const std::string& name, const Tensor& example) {
    tenon::TensorMeta meta = clean(Access::unwrap(example, "an example input").meta());
    tenon::Value value = tenon::add_input(graph_.body(), identifier(name), meta);
    inputs_.push_back({tenon::InputKind::user_input, value, graph_->info(value).name, ""});
    return Access::wrap(tracer_.tensor(value));
  }

  tenon::ExportedProgram finish(const std::vector<Tensor>& results, const std::vector<std::string>& names) {
    tenon::ExportedProgram out;
    std::vector<tenon::Value> values;
    for (const Tensor& result : results)
      values.push_back(tracer_.value(as_traced(Access::unwrap(result, "a result of forward"))));
    tenon::Args ordered;
    for (const std::vector<tenon::InputSpec>* list : {&state_, &constants_, &inputs_})
      for (const tenon::InputSpec& spec : *list) {
        out.signature.inputs.push_back(spec);
        ordered.push_back(spec.arg);
      }
    graph_->inputs = std::move(ordered);
    tenon::Tree leaf, arguments{"builtins.tuple", "", {}, std::vector<tenon::Tree>(inputs_.size())};
    tenon::Tree keywords{"builtins.dict", "", {}, {}};
    tenon::Tree returned = leaf;
    if (values.size() != 1) returned = {"builtins.tuple", "", {}, std::vector<tenon::Tree>(values.size())};
    tenon::ModuleCallSignature call{.in = {"builtins.tuple", "", {}, {arguments, keywords}}, .out = returned};
    call.forward_arg_names = names;
    for (const tenon::InputSpec& spec : inputs_) call.inputs.push_back(spec.arg);
    for (tenon::Value value : values) {
      graph_->outputs.emplace_back(value);
      call.outputs.emplace_back(value);
      out.signature.outputs.push_back({tenon::OutputKind::user_output, value, ""});
    }
    out.module_calls.push_back({"", std::move(call)});
    out.state = std::move(tensors_);
    out.constants = std::move(constant_tensors_);
    out.torch_version = "2.15.0";
    out.opset_version = {{"aten", 10}};
    out.samples = [] { return std::optional<tenon::SampleInputs>(); };
    out.graph = std::move(graph_);
    return out;
  }

 protected:
  tenon::CallResults run(const tenon::Op& op, tenon::CallArgs args) override {
    for (tenon::CallArg& arg : args)
      arg = tenon::map_tensors<tenon::Tensor>(arg, [&](const tenon::Tensor& t) { return as_traced(t); });
    return tracer_.call(op, std::move(args));
  }

 private:
  static tenon::TensorMeta clean(tenon::TensorMeta meta) {
    meta.requires_grad = meta.wrapped_number = false;
    meta.offset = 0;
    return meta;
  }

  tenon::Tensor as_traced(const tenon::Tensor& t) {
    if (!t || t.is_traced() || t.meta().wrapped_number) return t;
    auto found = lifted_.find(t.impl());
    if (found == lifted_.end()) {
      std::string name = tenon::text("lifted_tensor_", constants_.size());
      kept_.push_back(t);  // while its address says who it is
      lift(tenon::InputKind::constant_tensor, name, "c_" + name, t);
      found = lifted_.find(t.impl());
    }
    return tracer_.tensor(found->second);
  }

  void lift(tenon::InputKind kind, const std::string& target, const std::string& name, const tenon::Tensor& t) {
    tenon::TensorMeta meta = clean(t.meta());
    tenon::Tensor own = t.with_meta(t.meta());
    bool is_parameter = kind == tenon::InputKind::parameter;
    meta.requires_grad = is_parameter && tenon::autograd::requires_grad(t);
    own.impl()->meta.requires_grad = meta.requires_grad;
    tenon::Value value = tenon::add_input(graph_.body(), name, meta);
    lifted_.emplace(t.impl(), value);
    bool is_constant = kind == tenon::InputKind::constant_tensor;
    (is_constant ? constants_ : state_).push_back({kind, value, graph_->info(value).name, target});
    (is_constant ? constant_tensors_ : tensors_).push_back({target, own, is_parameter});
  }

  tenon::Graph graph_;
  tenon::Tracer tracer_;
  std::vector<tenon::InputSpec> state_, constants_, inputs_;
  std::vector<tenon::NamedTensor> tensors_, constant_tensors_;
  std::unordered_map<const void*, tenon::Value> lifted_;
  std::vector<tenon::Tensor> kept_;
};

}  // namespace

ExportedProgram export_program(const std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>& forward,
                               const std::vector<Tensor>& inputs, const ExportOptions& options) {
  return guarded(ErrorKind::call, [&] {
    tenon::require(forward != nullptr, "export_program: expected a function, got an empty one");
    tenon::require(options.input_names.empty() || options.input_names.size() == inputs.size(),
                   "export_program: expected a name for each of the ", inputs.size(), " inputs, got ",
                   options.input_names.size());
    tenon::interp::install();
    Exporter exporter;
    for (const auto& [name, tensor] : options.parameters) exporter.add_state(tenon::InputKind::parameter, name, tensor);
    for (const auto& [name, tensor] : options.buffers) exporter.add_state(tenon::InputKind::buffer, name, tensor);
    std::vector<std::string> names = options.input_names;
    std::vector<Tensor> arguments;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (names.size() == i) names.push_back(tenon::text("args_", i));
      arguments.push_back(exporter.add_input(names[i], inputs[i]));
    }
    std::vector<Tensor> results;
    {
      tenon::DispatchScope scope(&exporter);
      tenon::autograd::Unrecorded unrecorded;
      results = forward(arguments);
    }
    tenon::ExportedProgram program = exporter.finish(results, names);
    tenon::verify(program);
    tenon::check_metas(program.graph.body(), {});
    return Access::wrap(std::move(program));
  });
}

}  // namespace tenon::v0

#include "tenon/modules/unflatten.h"

#include <algorithm>

#include "tenon/dialect/run_decompositions.h"

namespace tenon {
namespace {

ExportedProgram without_writes(const ExportedProgram& program) {
  bool writes = false, regions = false;
  for (const Node& node : program.graph->nodes) {
    writes = writes || node.op->writes();
    regions = regions || node.op->traits.control == Control::grad_region;
    writes = writes || node.op->traits.may_alias;  // what they share may be written
  }
  return writes || regions ? run_decompositions(program, {.to = Dialect::aten}) : program.copy();
}

}  // namespace

/// Nodes of a module, ready to run.
struct Unflattened::Part {
  explicit Part(const ExportedProgram& program) : state(state_of(program)), executables(program) {}
  std::unique_ptr<State> state;
  Executables executables;
};

Unflattened::Unflattened(const ExportedProgram& program)
    : program_(without_writes(program)), root_(split_modules(program_)) {
  for (const OutputSpec& spec : program_.signature.outputs)
    require(spec.kind != OutputKind::user_input_mutation, "the program writes to its input ", quoted(spec.target),
            ", which modules called one by one cannot do; copy the input in forward before it is written");
  collect(root_);
}
Unflattened::~Unflattened() = default;

void Unflattened::collect(const ModuleCall& module) {
  in_order_.push_back(&module);
  for (const ModuleStep& step : module.steps) {
    if (step.call) collect(*step.call);
    else parts_[&step] = std::make_unique<Part>(step.own);
  }
}

std::vector<std::string> Unflattened::modules() const {
  std::vector<std::string> out;
  for (const ModuleCall* module : in_order_)
    if (std::find(out.begin(), out.end(), module->path) == out.end()) out.push_back(module->path);
  return out;
}

const ModuleCall& Unflattened::module(const std::string& path) const {
  for (const ModuleCall* module : in_order_)
    if (module->path == path) return *module;
  fail("the program has no module ", quoted(path), "; it has ", join(modules(), ", "));
}

std::vector<CallArg> Unflattened::gathered(const Args& args, const Values& values) const {
  std::vector<CallArg> out;
  for (const Arg& arg : args) {
    auto* v = arg.get<Value>();
    if (!v || !*v) {
      out.push_back(map_tensors<Tensor>(arg, [](const Value&) { return Tensor(); }));
      continue;
    }
    auto at = values.find(v->id);
    if (at != values.end()) out.push_back(at->second);
    else {  // state that comes out as it is
      const GraphBody& graph = program_.graph.body();
      size_t i = 0;
      while (i < graph.inputs.size() && !(graph.inputs[i] == arg)) ++i;
      expect(i < graph.inputs.size(), "a value that no module gave");
      out.emplace_back(get(program_.signature.inputs[i].target));
    }
  }
  return out;
}

std::vector<CallArg> Unflattened::run_own(const ModuleStep& step, const Values& values) {
  Part& part = *parts_.at(&step);
  std::vector<CallArg> inputs = gathered(step.takes, values);
  Session session(part.executables.for_inputs(inputs));
  return session.run(*part.state, inputs, {}).outputs;
}

void Unflattened::run(const ModuleCall& module, Values& values) {
  auto store = [&](const Args& gives, std::vector<CallArg> results, const std::string& path) {
    require(results.size() == gives.size(), "the module ", quoted(path), " gives ", gives.size(),
            " values, what it was", " replaced by gave ", results.size());
    for (size_t i = 0; i < gives.size(); ++i)
      if (auto* v = gives[i].get<Value>(); v && *v) values[v->id] = std::move(results[i]);
  };
  for (const ModuleStep& step : module.steps) {
    if (!step.call) {
      store(step.gives, run_own(step, values), module.path);
      continue;
    }
    auto instead = replaced_.find(step.call->path);
    if (instead == replaced_.end()) run(*step.call, values);
    else store(step.call->gives, instead->second(gathered(step.call->takes, values)), step.call->path);
  }
}

std::vector<CallArg> Unflattened::call(const std::vector<CallArg>& inputs) {
  Values values;
  size_t leaf = 0;
  const GraphBody& graph = program_.graph.body();
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (program_.signature.inputs[i].kind != InputKind::user_input) continue;
    require(leaf < inputs.size(), "expected an argument for ", quoted(program_.signature.inputs[i].name), ", got ",
            inputs.size(), " in all");
    if (auto* v = graph.inputs[i].get<Value>()) values[v->id] = inputs[leaf];
    ++leaf;
  }
  require(leaf == inputs.size(), "expected ", leaf, " arguments, got ", inputs.size());
  run(root_, values);
  std::vector<CallArg> results, updates;
  for (const OutputSpec& spec : program_.signature.outputs)
    if (spec.kind != OutputKind::buffer_mutation && spec.kind != OutputKind::parameter_mutation)
      results.push_back(gathered({spec.arg}, values)[0]);
  for (const OutputSpec& spec : program_.signature.outputs)
    if (spec.kind == OutputKind::buffer_mutation || spec.kind == OutputKind::parameter_mutation)
      set(spec.target, gathered({spec.arg}, values)[0].as<Tensor>());
  return results;
}

std::vector<CallArg> Unflattened::call_module(const std::string& path, const std::vector<CallArg>& inputs) {
  if (path.empty()) return call(inputs);
  const ModuleCall& called = module(path);
  require(inputs.size() == called.takes.size(), "the module ", quoted(path), " takes ", called.takes.size(),
          " values, got ", inputs.size());
  if (auto instead = replaced_.find(path); instead != replaced_.end()) return instead->second(inputs);
  Values values;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (auto* v = called.takes[i].get<Value>(); v && *v) values[v->id] = inputs[i];
  run(called, values);
  return gathered(called.gives, values);
}

void Unflattened::replace(const std::string& path, Forward forward) {
  require(!path.empty(), "the program itself cannot be replaced; call what you have in its place");
  module(path);
  require(forward != nullptr, "the module ", quoted(path),
          " cannot be replaced by nothing; restore() undoes a replacement");
  replaced_[path] = std::move(forward);
}

void Unflattened::restore(const std::string& path) {
  module(path);
  replaced_.erase(path);
}

Tensor Unflattened::get(const std::string& name) const {
  for (const auto& [step, part] : parts_)
    if (const Tensor* found = part->state->find(name)) return *found;
  const NamedTensor* found = program_.find_state(name);
  require(found != nullptr, "the program has no parameter, buffer or constant ", quoted(name));
  return found->tensor;
}

void Unflattened::set(const std::string& name, const Tensor& value) {
  bool found = false;
  for (auto& [step, part] : parts_)
    if (part->state->find(name)) {
      part->state->set(name, value);
      found = true;
    }
  for (NamedTensor& each : program_.state)
    if (each.name == name) each.tensor = value, found = true;
  for (NamedTensor& each : program_.constants)
    if (each.name == name) each.tensor = value, found = true;
  require(found, "the program has no parameter, buffer or constant ", quoted(name));
}

}  // namespace tenon

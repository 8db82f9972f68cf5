#include "tenon/aot/joint.h"

#include <algorithm>
#include <unordered_set>

#include "tenon/autograd/reverse.h"
#include "tenon/ops/creation.h"
#include "tenon/sym/evaluate.h"
#include "tenon/trace/trace.h"

namespace tenon {

Wrt parse_wrt(std::string_view text) {
  if (text == "parameters") return {true, false, {}};
  if (text == "inputs") return {false, true, {}};
  if (text == "all") return {true, true, {}};
  Wrt wrt{false, false, split(text, ',')};
  for (const std::string& name : wrt.names)
    require(!name.empty(), "an empty name in ", quoted(text), "; expected parameters, inputs, all or NAME,NAME,...");
  return wrt;
}

namespace {

bool has_name(const InputMeaning& meaning, const std::string& name) {
  if (auto* p = std::get_if<input::Parameter>(&meaning))
    return std::find(p->names.begin(), p->names.end(), name) != p->names.end();
  if (auto* b = std::get_if<input::Buffer>(&meaning))
    return std::find(b->names.begin(), b->names.end(), name) != b->names.end();
  if (auto* u = std::get_if<input::User>(&meaning)) return u->name == name;
  return false;
}

std::vector<bool> wanted_inputs(const FunctionalProgram& f, const Wrt& wrt) {
  std::vector<bool> wanted(f.convention.inputs.size());
  auto differentiable = [&](size_t i) {
    const Value* v = f.graph->inputs[i].get<Value>();
    return v && f.graph->info(*v).type == ValueType::tensor && is_differentiable(f.graph->info(*v).meta.dtype);
  };
  for (size_t i = 0; i < wanted.size(); ++i) {
    const InputMeaning& m = f.convention.inputs[i];
    if (wrt.parameters && std::holds_alternative<input::Parameter>(m))
      wanted[i] = differentiable(i) && f.graph->info(*f.graph->inputs[i].get<Value>()).meta.requires_grad;
    if (wrt.inputs && std::holds_alternative<input::User>(m)) wanted[i] = differentiable(i);
  }
  for (const std::string& name : wrt.names) {
    bool found = false;
    for (size_t i = 0; i < wanted.size(); ++i)
      if (has_name(f.convention.inputs[i], name)) {
        require(differentiable(i), quoted(name), " has no gradient: it is ",
                f.graph->info(*f.graph->inputs[i].get<Value>()).meta.dtype);
        wanted[i] = found = true;
      }
    std::vector<std::string> names;
    if (!found)
      for (size_t i = 0; i < wanted.size(); ++i)
        if (!std::holds_alternative<input::Constant>(f.convention.inputs[i]) &&
            !std::holds_alternative<input::RngState>(f.convention.inputs[i]) && differentiable(i))
          names.push_back(public_name(f.convention.inputs[i]));
    if (names.size() > 20) {
      names.resize(20);
      names.push_back("...");
    }
    require(found, "there is no parameter, buffer or input ", quoted(name),
            " to differentiate with respect to; there are ", join(names, ", "));
  }
  return wanted;
}

/// Whether the inputs tell the sizes of a tensor before the program runs.
bool has_known_sizes(const TensorMeta& meta, const GraphBody& graph) {
  std::unordered_set<SymInt> known;
  for (const Arg& input : graph.inputs)
    if (const Value* v = input.get<Value>()) {
      const ValueInfo& info = graph.info(*v);
      if (info.type != ValueType::tensor) known.insert(info.expr);
      else
        for (SymInt size : info.meta.sizes)
          for (SymInt symbol : sym::symbols_of(size)) known.insert(symbol);
    }
  for (SymInt size : meta.sizes)
    for (SymInt symbol : sym::symbols_of(size))
      if (!known.contains(symbol)) return false;
  return true;
}

}  // namespace

FunctionalProgram gradients_as_outputs(FunctionalProgram functional) {
  CallingConvention& c = functional.convention;
  Tree gradients{"builtins.dict", "", {}, {}};
  std::vector<size_t> seen(c.inputs.size());  // one tensor under several names has a gradient under each
  for (OutputMeaning& meaning : c.outputs)
    if (auto* g = std::get_if<output::Gradient>(&meaning)) {
      const InputMeaning& of = c.inputs[g->input];
      std::vector<std::string> names = {public_name(of)};
      if (auto* p = std::get_if<input::Parameter>(&of)) names = p->names;
      if (auto* b = std::get_if<input::Buffer>(&of)) names = b->names;
      gradients.keys.push_back(text("'grad.", names[std::min(seen[g->input]++, names.size() - 1)], "'"));
      gradients.children.emplace_back();
      meaning = output::User{c.user_outputs.size()};
      c.user_outputs.emplace_back();
    }
  if (!gradients.children.empty()) c.out = Tree{"builtins.tuple", "", {}, {c.out, gradients}};
  return functional;
}

JointProgram make_joint(FunctionalProgram functional, size_t of, const Wrt& wrt) {
  std::vector<bool> wanted = wanted_inputs(functional, wrt);
  JointProgram joint;
  joint.loss = of;
  joint.convention = functional.convention;
  require(of < functional.convention.user_outputs.size(), "there is no output_", of, ": the program has ",
          functional.convention.user_outputs.size(), " outputs");
  size_t position = ~size_t{0};
  for (size_t i = 0; i < functional.convention.outputs.size(); ++i)
    if (auto* u = std::get_if<output::User>(&functional.convention.outputs[i]); u && u->leaf == of) position = i;
  require(position != ~size_t{0} && functional.graph->outputs[position].is<Value>(), "output_", of,
          " is no tensor and cannot be differentiated");
  {
    const TensorMeta& meta = functional.graph->info(*functional.graph->outputs[position].get<Value>()).meta;
    require(is_differentiable(meta.dtype), "output_", of, " is ", meta,
            ": only a floating point output can be differentiated");
  }
  joint.graph =
      prepare_for_gradients(functional.graph.body(), wanted, {*functional.graph->outputs[position].get<Value>()});
  GraphBody& graph = joint.graph.body();
  Value loss = *graph.outputs[position].get<Value>();
  const TensorMeta meta = graph.info(loss).meta;
  Tracer tracer(graph);
  tracer.phase = Phase::backward;
  bool given = meta.rank() > 0 && has_known_sizes(meta, graph);
  Value cotangent;
  if (!given) {
    DispatchScope scope(&tracer);
    cotangent = tracer.value(ones_like(tracer.tensor(loss)));
  } else {
    cotangent =
        add_value(graph, {.name = text("tangent_output_", of), .meta = make_meta(meta.dtype, meta.sizes, meta.device)});
    graph.inputs.emplace_back(cotangent);
    joint.convention.inputs.emplace_back(input::Tangent{of});
  }
  std::vector<Value> inputs;
  std::vector<size_t> which;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) {
      inputs.push_back(*graph.inputs[i].get<Value>());
      which.push_back(i);
    }
  std::vector<Value> gradients = append_backward(graph, {loss}, {cotangent}, inputs);
  for (size_t i = 0; i < gradients.size(); ++i)
    if (gradients[i]) {
      graph.outputs.emplace_back(gradients[i]);
      joint.convention.outputs.emplace_back(output::Gradient{which[i]});
    }
  bool nothing = std::none_of(gradients.begin(), gradients.end(), [](Value g) { return static_cast<bool>(g); });
  if (nothing && given) {  // a cotangent that nobody would read
    graph.inputs.pop_back();
    joint.convention.inputs.pop_back();
  }
  joint.graph = remove_dead_code(std::move(joint.graph));
  verify(joint.graph.body());
  return joint;
}

}  // namespace tenon

#include "tenon/dialect/run_decompositions.h"

#include <algorithm>

#include "tenon/dialect/retrace_program.h"
#include "tenon/interp/eager.h"
#include "tenon/passes/normalize.h"

namespace tenon {
namespace {

using dialect::Retraced;

// The first operator of a graph, or of one within it, for which a question is answered with yes.
const Op* find_op(const GraphBody& graph, bool (*asked)(const Op&)) {
  for (const Node& node : graph.nodes) {
    if (asked(*node.op)) return node.op;
    for (const Arg& arg : node.args)
      if (auto* within = arg.get<Subgraph>())
        if (const Op* op = find_op(*within->body, asked)) return op;
  }
  return nullptr;
}

// Of an operator that is not known here, the name alone says it: resize_.
bool writes(const Op& op) {
  std::string_view name = op.schema.base();
  return op.writes() || (op.traits.unknown && ends_with(name, "_") && !ends_with(name, "__"));
}
bool is_tenons_own(const Op& op) { return op.schema.space() == "tenon"; }

/// One conversion: the graph traced anew, then what a program is besides its graph.
class Converter {
 public:
  Converter(const ExportedProgram& from, const DecomposeOptions& options) : from_(from), policy_(options) {}

  ExportedProgram run() {
    interp::install();  // rules may compute with real numbers while they are traced
    const GraphBody& source = from_.graph.body();
    if (dialect::is_normalized_first(source)) {
      normalized_ = normalize(source);  // the conversions that autocast makes and batches, written out
      made_ = dialect::retrace_graph(normalized_.body(), policy_);
      made_.map.assign(source.values.size(), Value{});
    } else {
      made_ = dialect::retrace_graph(source, policy_);
    }
    require_sayable(source);
    out_ = from_.copy();
    out_.dialect = "ATEN";
    out_.graph = std::move(made_.graph);
    signature();
    remove_copies();
    rename();
    module_calls();
    verify(out_);
    return std::move(out_);
  }

 private:
  // What the functional dialects, or PyTorch, have no way to say is refused.
  void require_sayable(const GraphBody& source) const {
    const GraphBody& made = made_.graph.body();
    if (const Op* op = find_op(made, writes))
      fail_unsupported(text("a call of ", op->name(), " has no form without a write here"));
    const Op* own = find_op(source, is_tenons_own) ? nullptr : find_op(made, is_tenons_own);
    if (own)
      fail_unsupported(text("one of the operators is made of ", own->name(),
                            " here, which PyTorch does not have; where it draws random numbers, name it in keep"));
    for (size_t i : made_.written) {
      const InputSpec& spec = from_.signature.inputs[i];
      for (const InputSpec& other : from_.signature.inputs)
        require(!share_memory(spec, other), quoted(spec.target), " and ", quoted(other.target),
                " share memory, and the program writes to it: the functional dialects cannot say that");
    }
  }

  bool share_memory(const InputSpec& a, const InputSpec& b) const {
    auto is_state = [](const InputSpec& spec) {
      return spec.kind == InputKind::parameter || spec.kind == InputKind::buffer ||
             spec.kind == InputKind::constant_tensor;
    };
    if (!is_state(a) || !is_state(b) || a.target == b.target) return false;
    return from_.tensor_of(a).storage() == from_.tensor_of(b).storage();
  }

  void signature() {
    std::vector<OutputSpec> specs;
    for (size_t i : made_.written) specs.push_back(update_of(from_.signature.inputs[i]));
    specs.insert(specs.end(), from_.signature.outputs.begin(), from_.signature.outputs.end());
    expect(specs.size() == out_.graph->outputs.size(), "a retraced graph of another number of outputs");
    for (size_t i = 0; i < specs.size(); ++i) specs[i].arg = out_.graph->outputs[i];
    for (size_t i = 0; i < out_.signature.inputs.size(); ++i) out_.signature.inputs[i].arg = out_.graph->inputs[i];
    out_.signature.outputs = std::move(specs);
  }

  static OutputSpec update_of(const InputSpec& input) {
    OutputSpec out;
    switch (input.kind) {
      case InputKind::buffer:
      case InputKind::constant_tensor: out.kind = OutputKind::buffer_mutation; break;
      case InputKind::parameter: out.kind = OutputKind::parameter_mutation; break;
      case InputKind::user_input: out.kind = OutputKind::user_input_mutation; break;
      case InputKind::custom_object:
      case InputKind::token: unreachable();
    }
    out.target = input.kind == InputKind::user_input ? input.name : input.target;
    return out;
  }

  // A buffer whose update is a copy of a value gets the value itself.
  void remove_copies() {
    GraphBody& graph = out_.graph.body();
    for (OutputSpec& spec : out_.signature.outputs) {
      if (spec.kind != OutputKind::buffer_mutation && spec.kind != OutputKind::parameter_mutation) continue;
      const Value* v = spec.arg.get<Value>();
      NodeId producer = v && *v ? graph.info(*v).producer : no_id;
      auto at = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
        return node.op->name() == "aten::copy" && node.results.size() == 1 && node.results[0] == Arg(*v);
      });
      if (producer == no_id || at == graph.nodes.end()) continue;
      const Value* source = at->args.at(1).get<Value>();
      if (!source) continue;
      Value gone = *v, instead = *source;
      graph.nodes.erase(at);
      auto replace = [&](Arg& arg) {
        for_each_tensor(arg, [&](Value& each) {
          if (each == gone) each = instead;
        });
      };
      for (Node& node : graph.nodes)
        for (Arg& arg : node.args) replace(arg);
      for (Arg& output : graph.outputs) replace(output);
      for (OutputSpec& other : out_.signature.outputs) replace(other.arg);
      for (Value& each : made_.map)
        if (each == gone) each = instead;
    }
    for (size_t i = 0; i < graph.nodes.size(); ++i)
      for_each_result(graph.nodes[i], [&](Value v) { graph.info(v).producer = static_cast<NodeId>(i); });
  }

  // Inputs keep their names: nodes that have one of these get another.
  void rename() {
    dialect::NamesAroundInputs names;
    GraphBody& graph = out_.graph.body();
    for (const InputSpec& spec : out_.signature.inputs)
      if (spec.kind == InputKind::user_input) names.take(spec.name);
    for (const InputSpec& spec : out_.signature.inputs)
      if (spec.kind != InputKind::user_input) names.take(spec.name);
    for (Node& node : graph.nodes) {
      bool single = node.results.size() == 1 && node.results[0].is<Value>() &&
                    graph.info(*node.results[0].get<Value>()).name == node.origin.name;
      if (!node.origin.name.empty()) node.origin.name = names.rename(node.origin.name);
      for_each_result(node, [&](Value v) {
        std::string& name = graph.info(v).name;
        if (single) name = node.origin.name;
        else if (!name.empty()) name = names.rename(name);
      });
    }
    graph.names.clear();
    for (const ValueInfo& info : graph.values) graph.names.try_emplace(info.name, 1);
  }

  // A number of the old graph was an expression meanwhile: what computes the same in the new graph, if anything does.
  Value same_number(Value old, const std::vector<bool>& there) const {
    const ValueInfo& number = from_.graph->info(old);
    bool computed =
        number.type == ValueType::integer || number.type == ValueType::floating || number.type == ValueType::boolean;
    if (!computed) return {};
    const GraphBody& graph = out_.graph.body();
    for (size_t i = 0; i < graph.values.size(); ++i)
      if (there[i] && graph.values[i].type == number.type && graph.values[i].expr == number.expr)
        return Value{static_cast<ValueId>(i)};
    return {};
  }

  // Calls of submodules in terms of the new graph; one whose values are gone keeps its name alone.
  void module_calls() {
    const GraphBody& graph = out_.graph.body();
    std::vector<bool> there(graph.values.size());
    for (const Arg& input : graph.inputs)
      if (auto* v = input.get<Value>()) there[v->id] = true;
    for (const Node& node : graph.nodes) for_each_result(node, [&](Value v) { there[v.id] = true; });
    auto move = [&](Args& args) {
      bool found = true;
      for (Arg& arg : args)
        for_each_tensor(arg, [&](Value& v) {
          if (!v) return;
          Value made = v.id < made_.map.size() ? made_.map[v.id] : Value{};
          if (!made || !there[made.id]) made = same_number(v, there);
          found = found && made && there[made.id];
          if (found) v = made;
        });
      return found;
    };
    for (ModuleCallEntry& entry : out_.module_calls) {
      if (!entry.signature) continue;
      bool moved = move(entry.signature->inputs) && move(entry.signature->outputs);
      if (!moved && !entry.fqn.empty()) entry.signature.reset();
      else if (!moved) entry.signature->inputs.clear(), entry.signature->outputs.clear();  // that of the program
    }
  }

  const ExportedProgram& from_;
  dialect::Policy policy_;
  Graph normalized_;
  Retraced made_;
  ExportedProgram out_;
};

}  // namespace

std::optional<Dialect> dialect_named(std::string_view name) {
  if (name == "training") return Dialect::training;
  if (name == "aten") return Dialect::aten;
  if (name == "core") return Dialect::core;
  return std::nullopt;
}

ExportedProgram run_decompositions(const ExportedProgram& program, const DecomposeOptions& options) {
  if (options.to == Dialect::training) {
    require(program.dialect == "TRAINING", "a program of the dialect ", program.dialect,
            " cannot become one of the training dialect: what it was before is not in the file; export it anew");
    return program.copy();
  }
  return Converter(program, options).run();
}

}  // namespace tenon

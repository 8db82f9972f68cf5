#include "tenon/train/mode.h"

#include <algorithm>
#include <set>

#include "tenon/ops/arithmetic.h"
#include "tenon/passes/check_metas.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

constexpr std::string_view running_mean = "running_mean", counter = "num_batches_tracked";

/// The argument that says whether the call trains; -1 where there is none. Gradient operators repeat the flag of the
/// call they belong to and are no business of ours.
int mode_flag(const Schema& schema) {
  for (const SchemaArg& arg : schema.args)
    if (starts_with(arg.name, "grad_")) return -1;
  for (std::string_view name : {"train", "training", "use_input_stats"}) {
    int i = schema.find(name);
    if (i >= 0 && schema.args[static_cast<size_t>(i)].type.kind == TypeKind::boolean) return i;
  }
  return -1;
}

/// The mode of an operator on running statistics that has no flag: it updates them or it reads them.
std::optional<Mode> fixed_mode(const Schema& schema) {
  int statistics = schema.find(running_mean);
  if (statistics < 0 || schema.find("momentum") < 0 || mode_flag(schema) >= 0) return std::nullopt;
  bool updates = schema.args[static_cast<size_t>(statistics)].writes || schema.returns.size() > 4;
  return updates ? Mode::train : Mode::eval;
}

const Arg* argument(const Node& node, std::string_view name) {
  int i = node.op->schema.find(name);
  return i >= 0 && static_cast<size_t>(i) < node.args.size() ? &node.args[static_cast<size_t>(i)] : nullptr;
}

void give(Node& node, size_t i, Arg value) {
  node.args[i] = std::move(value);
  if (i < 64) node.given |= uint64_t{1} << i;
}

/// A top-level call that keeps running statistics.
struct WithStatistics {
  size_t node;
  bool starts_counting;  // it trains now and did not before, and its kind counts batches
};

/// Sets the flags of every call, in regions too.
class Flags {
 public:
  explicit Flags(Mode mode) : mode_(mode) {}

  void set(GraphBody& graph, std::vector<WithStatistics>* with_statistics) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      Node& node = graph.nodes[i];
      for (Arg& arg : node.args)
        if (const Subgraph* sub = arg.get<Subgraph>()) {
          auto body = std::make_shared<GraphBody>(*sub->body);
          set(*body, nullptr);
          arg = Subgraph{sub->name, std::move(body)};
        }
      const Schema& schema = node.op->schema;
      if (auto fixed = fixed_mode(schema))
        require(*fixed == mode_, node.op->name(), " works in ", *fixed == Mode::train ? "training" : "evaluation",
                " mode only: the program was decomposed in that mode; export the model after model.",
                mode_ == Mode::train ? "train()" : "eval()", " instead");
      if (mode_ == Mode::eval)
        if (const Arg* p = argument(node, "dropout_p"); p && p->is<double>() && *p->get<double>() != 0)
          give(node, static_cast<size_t>(schema.find("dropout_p")), 0.0);
      int flag = mode_flag(schema);
      if (flag < 0 || static_cast<size_t>(flag) >= node.args.size()) continue;
      const Arg* statistics = argument(node, running_mean);
      bool absent = statistics && (statistics->is_none() || (statistics->is<Value>() && !*statistics->get<Value>()));
      bool value = mode_ == Mode::train || absent;
      Arg& now = node.args[static_cast<size_t>(flag)];
      bool differs = !now.is<bool>() || *now.get<bool>() != value;
      if (differs) give(node, static_cast<size_t>(flag), value);
      changed = changed || differs;
      // Instance normalization takes its statistics from the input (use_input_stats) and counts nothing.
      bool counts = schema.args[static_cast<size_t>(flag)].name == "training";
      if (with_statistics && statistics && !absent) with_statistics->push_back({i, value && differs && counts});
    }
  }

  bool changed = false;

 private:
  Mode mode_;
};

/// "features.1." of features.1.running_mean; empty for a module that is the whole program.
std::string module_of(std::string_view target) { return std::string(target.substr(0, target.rfind('.') + 1)); }

/// Which buffer a value is, by its number.
class Buffers {
 public:
  explicit Buffers(const ExportedProgram& program) {
    for (size_t i = 0; i < program.signature.inputs.size(); ++i) {
      const InputSpec& spec = program.signature.inputs[i];
      const Value* v = program.graph->inputs[i].get<Value>();
      if (spec.kind == InputKind::buffer && v) targets_[v->id] = spec.target, values_[spec.target] = *v;
    }
  }
  const std::string* target(const Arg* arg) const {
    const Value* v = arg ? arg->get<Value>() : nullptr;
    auto found = v && *v ? targets_.find(v->id) : targets_.end();
    return found == targets_.end() ? nullptr : &found->second;
  }
  const Value* find(const std::string& target) const {
    auto found = values_.find(target);
    return found == values_.end() ? nullptr : &found->second;
  }

 private:
  std::unordered_map<ValueId, std::string> targets_;
  std::unordered_map<std::string, Value> values_;
};

/// How often each value is read by nodes and outputs.
std::vector<size_t> uses_of(const GraphBody& graph) {
  std::vector<size_t> uses(graph.values.size());
  auto count = [&](Value v) {
    if (v) ++uses[v.id];
  };
  for (const Node& node : graph.nodes) for_each_input(node, count);
  for (const Arg& output : graph.outputs) for_each_tensor(output, count);
  return uses;
}

/// The nodes that update a buffer of one of the modules and do nothing else: the buffer is read by such nodes alone.
std::set<size_t> unread_updates(const ExportedProgram& program, const Buffers& buffers,
                                const std::set<std::string>& modules) {
  const GraphBody& graph = program.graph.body();
  std::vector<size_t> uses = uses_of(graph);
  std::map<ValueId, std::vector<size_t>> updates;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (!node.op->functional || node.op->schema.args.empty() || !node.op->schema.args[0].writes) continue;
    const std::string* target = buffers.target(&node.args[0]);
    if (!target || !modules.contains(module_of(*target))) continue;
    size_t reads = 0;
    ValueId buffer = node.args[0].get<Value>()->id;
    for_each_input(node, [&](Value v) { reads += v.id == buffer; });
    bool unused = true;
    for_each_result(node, [&](Value v) { unused = unused && uses[v.id] == 0; });
    if (reads == 1 && unused) updates[buffer].push_back(i);
  }
  std::set<size_t> out;
  for (auto& [buffer, nodes] : updates)
    if (uses[buffer] == nodes.size()) out.insert(nodes.begin(), nodes.end());
  return out;
}

/// A functional program hands updates out: those of the modules are no longer made.
void drop_mutations(ExportedProgram& program, const std::set<std::string>& modules) {
  auto& specs = program.signature.outputs;
  for (size_t i = specs.size(); i-- > 0;)
    if (specs[i].kind == OutputKind::buffer_mutation && modules.contains(module_of(specs[i].target))) {
      specs.erase(specs.begin() + static_cast<std::ptrdiff_t>(i));
      program.graph->outputs.erase(program.graph->outputs.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

Node counting_node(GraphBody& graph, Value count, const Node& beside) {
  static const Op& add_into = registry().in_place_form(add.op());
  Node node;
  node.op = &add_into;
  node.args = {Arg(count), Arg(SymInt(1)), Arg(SymInt(1))};
  node.given = 3;
  node.grad_enabled = beside.grad_enabled;
  node.results.emplace_back(
      add_value(graph, {.name = std::string(add_into.schema.base()), .meta = graph.info(count).meta}));
  node.origin.metadata = beside.origin.metadata;
  std::erase_if(node.origin.metadata.edit(), [](const auto& entry) { return entry.first == "torch_fn"; });
  return node;
}

/// The graph without some nodes, and with a count before others; the signature then speaks of the new graph.
void rebuild(ExportedProgram& program, const std::set<size_t>& dropped, const std::map<size_t, Value>& counted) {
  Replay replay(program.graph.body());
  replay.inputs();
  for (size_t i = 0; i < program.graph->nodes.size(); ++i) {
    if (dropped.contains(i)) continue;
    const Node& node = program.graph->nodes[i];
    if (auto count = counted.find(i); count != counted.end())
      add_node(replay.graph.body(), counting_node(replay.graph.body(), replay.map[count->second.id], node));
    replay.node(node);
  }
  replay.outputs();
  for (ModuleCallEntry& entry : program.module_calls)
    if (entry.signature)
      for (Args* args : {&entry.signature->inputs, &entry.signature->outputs})
        for (Arg& arg : *args) arg = replay.moved(arg);
  program.graph = remove_dead_code(std::move(replay.graph));
  for (size_t i = 0; i < program.signature.inputs.size(); ++i)
    program.signature.inputs[i].arg = program.graph->inputs[i];
  for (size_t i = 0; i < program.signature.outputs.size(); ++i)
    program.signature.outputs[i].arg = program.graph->outputs[i];
}

}  // namespace

ExportedProgram in_mode(const ExportedProgram& original, Mode mode) {
  for (const OutputSpec& spec : original.signature.outputs)
    require(spec.kind != OutputKind::gradient_to_parameter && spec.kind != OutputKind::gradient_to_user_input,
            "the program computes gradients, which belong to the mode it was differentiated in; change the mode of the "
            "program it was made from");
  ExportedProgram program = original.copy();
  Flags flags(mode);
  std::vector<WithStatistics> with_statistics;
  flags.set(program.graph.body(), &with_statistics);
  if (flags.changed) correct_metas(program.graph.body());  // of statistics that are saved in one mode only

  Buffers buffers(program);
  std::set<std::string> modules;
  for (const WithStatistics& call : with_statistics)
    if (const std::string* target = buffers.target(argument(program.graph->nodes[call.node], running_mean)))
      modules.insert(module_of(*target));
  std::set<size_t> dropped;
  std::map<size_t, Value> counted;
  if (mode == Mode::eval) {
    dropped = unread_updates(program, buffers, modules);
    drop_mutations(program, modules);
  } else {
    std::vector<size_t> uses = uses_of(program.graph.body());
    for (const WithStatistics& call : with_statistics) {
      const std::string* target = buffers.target(argument(program.graph->nodes[call.node], running_mean));
      const Value* count = target ? buffers.find(module_of(*target) + std::string(counter)) : nullptr;
      if (call.starts_counting && count && uses[count->id] == 0) counted[call.node] = *count;
    }
  }
  rebuild(program, dropped, counted);
  verify(program);
  return program;
}

}  // namespace tenon

#include "tenon/export/split_modules.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tenon/export/module_tree.h"

namespace tenon {
namespace {

class Splitter {
 public:
  explicit Splitter(const ExportedProgram& program) : program_(program), graph_(program.graph.body()) {
    for (size_t i = 0; i < graph_.inputs.size(); ++i)
      if (auto* v = graph_.inputs[i].get<Value>(); v && program.signature.inputs[i].kind != InputKind::user_input)
        state_[v->id] = i;
    last_use_.assign(graph_.values.size(), 0);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      require(!graph_.nodes[i].op->writes(), "the operator ", graph_.nodes[i].op->name(),
              " writes; bring the program to the aten dialect first");
      for_each_input(graph_.nodes[i], [&](Value v) { last_use_[v.id] = i; });
      stacks_.push_back(module_stack(graph_.nodes[i]));
      // Numbers and what is made of state alone belong to the program: several modules may use them.
    }
    for (const Arg& output : graph_.outputs)
      for_each_tensor(output, [&](const Value& v) {
        if (v) last_use_[v.id] = graph_.nodes.size();
      });
  }

  ModuleCall run() {
    ModuleCall root;
    for (const auto& stack : stacks_)
      if (!stack.empty() && stack[0].path.empty()) root.class_name = stack[0].class_name;
    fill(root, 0, graph_.nodes.size(), 0);
    return root;
  }

 private:
  // The frame of a node below the module at a depth; none: the node is the module's own.
  const ModuleFrame* below(size_t node, size_t depth) const {
    size_t at = depth;
    const auto& stack = stacks_[node];
    if (!stack.empty() && stack[0].path.empty()) ++at;  // the program itself
    return at < stack.size() ? &stack[at] : nullptr;
  }

  void fill(ModuleCall& module, size_t begin, size_t end, size_t depth) {
    boundary(begin, end, module.takes, module.gives, &module.state);
    preserved(module);
    for (size_t i = begin; i < end;) {
      const ModuleFrame* frame = below(i, depth);
      size_t next = i + 1;
      auto same = [&](size_t k) {
        const ModuleFrame* other = below(k, depth);
        return frame ? other && other->path == frame->path && other->call == frame->call : !other;
      };
      while (next < end && same(next)) ++next;
      ModuleStep step;
      boundary(i, next, step.takes, step.gives, nullptr);
      if (frame) {
        step.call = std::make_unique<ModuleCall>();
        step.call->path = frame->path;
        step.call->class_name = frame->class_name;
        step.call->call = calls_[frame->path]++;
        fill(*step.call, i, next, depth + 1);
      } else {
        step.own = program_of(i, next, step);
      }
      module.steps.push_back(std::move(step));
      i = next;
    }
  }

  // Values that nodes [begin, end) read from before, in order of first use, and give to what is behind.
  void boundary(size_t begin, size_t end, Args& takes, Args& gives, std::vector<std::string>* state) const {
    std::unordered_set<ValueId> inside, met;
    for (size_t i = begin; i < end; ++i) {
      for_each_input(graph_.nodes[i], [&](Value v) {
        if (inside.contains(v.id) || !met.insert(v.id).second) return;
        auto held = state_.find(v.id);
        if (held == state_.end()) takes.emplace_back(v);
        else if (state) state->push_back(program_.signature.inputs[held->second].target);
      });
      for_each_result(graph_.nodes[i], [&](Value v) { inside.insert(v.id); });
    }
    for (size_t i = begin; i < end; ++i)
      for_each_result(graph_.nodes[i], [&](Value v) {
        if (last_use_[v.id] >= end) gives.emplace_back(v);
      });
  }

  // A preserved signature says in what order, and with which constants, the module was called.
  void preserved(ModuleCall& module) const {
    if (module.path.empty()) return;
    std::string fqn = module.call == 0 ? module.path : text(module.path, "@", module.call);
    for (const ModuleCallEntry& entry : program_.module_calls) {
      if (entry.fqn != fqn || !entry.signature) continue;
      auto has_all = [](const Args& of, const Args& wanted) {
        return std::all_of(wanted.begin(), wanted.end(),
                           [&](const Arg& arg) { return std::find(of.begin(), of.end(), arg) != of.end(); });
      };
      if (!has_all(entry.signature->outputs, module.gives)) return;
      Args takes = entry.signature->inputs;
      for (const Arg& arg : module.takes)  // what it reads besides its arguments: numbers of the program
        if (std::find(takes.begin(), takes.end(), arg) == takes.end()) takes.push_back(arg);
      module.takes = std::move(takes);
      module.gives = entry.signature->outputs;
      module.kept = true;
    }
  }

  ExportedProgram program_of(size_t begin, size_t end, const ModuleStep& step) const {
    ExportedProgram out;
    Replay replay(graph_);
    auto input = [&](Value v, InputSpec spec) {
      ValueInfo info = graph_.info(v);
      info.producer = no_id;
      spec.name = info.name;
      replay.map[v.id] = add_value(replay.graph.body(), std::move(info));
      replay.graph->inputs.emplace_back(replay.map[v.id]);
      spec.arg = replay.map[v.id];
      out.signature.inputs.push_back(std::move(spec));
    };
    std::unordered_set<ValueId> met;
    for (size_t i = begin; i < end; ++i)
      for_each_input(graph_.nodes[i], [&](Value v) {
        auto held = state_.find(v.id);
        if (held != state_.end() && met.insert(v.id).second) input(v, program_.signature.inputs[held->second]);
      });
    for (const Arg& arg : step.takes) input(*arg.get<Value>(), {});
    for (size_t i = begin; i < end; ++i) replay.node(graph_.nodes[i]);
    for (const Arg& arg : step.gives) {
      replay.graph->outputs.push_back(replay.moved(arg));
      OutputSpec spec;
      spec.arg = replay.graph->outputs.back();
      out.signature.outputs.push_back(std::move(spec));
    }
    out.graph = std::move(replay.graph);
    for (const NamedTensor& each : program_.state)
      if (uses(out, each.name)) out.state.push_back(each);
    for (const NamedTensor& each : program_.constants)
      if (uses(out, each.name)) out.constants.push_back(each);
    out.ranges = program_.ranges;
    out.hints = program_.hints;
    out.dialect = program_.dialect;
    out.check_payloads = program_.check_payloads;
    ModuleCallSignature call;
    Tree leaves{.type = "builtins.tuple", .context = "null"};
    leaves.children.resize(step.takes.size());
    call.in = Tree{.type = "builtins.tuple", .context = "null"};
    call.in.children = {leaves, Tree{.type = "builtins.dict", .context = "[]"}};
    call.out = Tree{.type = "builtins.tuple", .context = "null"};
    call.out.children.resize(step.gives.size());
    out.module_calls.push_back({"", std::move(call)});
    return out;
  }

  static bool uses(const ExportedProgram& program, const std::string& name) {
    return std::any_of(program.signature.inputs.begin(), program.signature.inputs.end(),
                       [&](const InputSpec& spec) { return spec.target == name; });
  }

  const ExportedProgram& program_;
  const GraphBody& graph_;
  std::unordered_map<ValueId, size_t> state_;  // values that are state -> their input
  std::vector<size_t> last_use_;
  std::vector<std::vector<ModuleFrame>> stacks_;
  std::unordered_map<std::string, int> calls_;
};

}  // namespace

ModuleCall split_modules(const ExportedProgram& program) { return Splitter(program).run(); }

}  // namespace tenon

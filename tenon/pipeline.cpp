#include "tenon/pipeline.h"

#include <cstring>
#include <set>

#include "tenon/aot/rematerialize.h"
#include "tenon/aot/sharing.h"
#include "tenon/aot/write_joint.h"
#include "tenon/export/print.h"
#include "tenon/export/runnable.h"
#include "tenon/export/serde/load.h"
#include "tenon/lower/lower.h"
#include "tenon/optimize/add_epilogues.h"
#include "tenon/optimize/assign_layouts.h"
#include "tenon/optimize/fold_scales.h"
#include "tenon/optimize/fold_state.h"
#include "tenon/optimize/fuse.h"
#include "tenon/optimize/pack_weights.h"
#include "tenon/optimize/split_sums.h"
#include "tenon/optimize/turn_products.h"
#include "tenon/passes/check_metas.h"
#include "tenon/passes/decompose.h"
#include "tenon/passes/normalize.h"
#include "tenon/passes/wrapped_calls.h"
#include "tenon/plan/make_tables.h"
#include "tenon/rules/registry.h"

namespace tenon {

std::optional<StageName> stage_named(std::string_view name) {
  static constexpr std::string_view names[] = {"read",  "normalized", "functional", "joint",  "partition",
                                               "loops", "folded",     "fused",      "packed", "kernels"};
  if (name == "normalised") name = "normalized";
  for (size_t i = 0; i < std::size(names); ++i)
    if (names[i] == name) return static_cast<StageName>(i);
  return std::nullopt;
}

ExportedProgram open_program(const std::string& path, const OpenOptions& options) {
  ExportedProgram program = load_exported(path, registry(), {.model = options.model});
  if (options.move_to_cpu) move_to_cpu(program);
  try {
    if (!why_not_runnable(program)) {
      bool older = std::pair(program.schema_major, program.schema_minor) < std::pair(int64_t{8}, int64_t{9});
      if (older) correct_metas(program.graph.body());
      else correct_unread_metas(program.graph.body()), correct_misdescribed(program.graph.body());
      check_metas(program.graph.body(), program.hints);
    }
  } catch (const Error& e) { fail(path, ": ", e.what()); }
  return program;
}

namespace {

void require_runnable(const ExportedProgram& program) {
  if (auto reason = why_not_runnable(program)) fail(*reason);
}

void collect_missing(const GraphBody& graph, std::set<std::string>& names) {
  for (const Node& node : graph.nodes) {
    if (node.op->traits.unknown) names.insert(node.op->target);
    if (auto missing = missing_operator(node)) names.insert(*missing);
    for (const Arg& arg : node.args)
      if (const Subgraph* sub = arg.get<Subgraph>()) collect_missing(*sub->body, names);
  }
}

/// The functional program for memory shared as the stored samples share it, gradients among its outputs.
FunctionalProgram functional_of_samples(const ExportedProgram& program, const Graph& normalized,
                                        const std::vector<CallArg>& inputs) {
  std::optional<SampleInputs> samples;
  try {
    if (inputs.empty() && program.samples) samples = program.samples();
  } catch (const Error&) {}  // unreadable: who writes the program warns of it
  return gradients_as_outputs(functionalize(program, normalized, samples ? samples->leaves : inputs));
}

std::string labelled(const GraphBody& graph, const CallingConvention& convention) {
  return to_text(
      graph, [&](const GraphBody&, size_t i) { return to_text(convention.inputs[i]); },
      [&](const GraphBody&, size_t i) { return to_text(convention.outputs[i], convention); });
}

}  // namespace

std::vector<std::string> missing_operators(const ExportedProgram& program) {
  std::set<std::string> names;
  collect_missing(program.graph.body(), names);
  return {names.begin(), names.end()};
}

Walk::Walk(const ExportedProgram& program, WalkOptions options) : program_(program), options_(std::move(options)) {}
Walk::~Walk() = default;

const Graph& Walk::normalized() {
  if (!normalized_) require_runnable(program_);
  if (!normalized_)
    normalized_ =
        driver_.run("normalize", program_.graph->nodes.size(), [&] { return normalize(program_.graph.body()); });
  return *normalized_;
}

const FunctionalProgram& Walk::functional() {
  LoweringScope scope(options_.lowering);
  if (!functional_)
    functional_ = driver_.run("functionalize", normalized()->nodes.size(),
                              [&] { return functionalize(program_, normalized(), options_.inputs); });
  return *functional_;
}

const JointProgram& Walk::joint() {
  LoweringScope scope(options_.lowering);
  if (!joint_)
    joint_ = driver_.run("differentiate", normalized()->nodes.size(), [&] {
      return make_joint(functional_of_samples(program_, normalized(), options_.inputs), options_.of, options_.wrt);
    });
  if (options_.memory_budget && !rematerialized_) {
    joint_ = driver_.run("rematerialize", joint_->graph->nodes.size(),
                         [&] { return rematerialize(*joint_, {.memory_budget = *options_.memory_budget}); });
    rematerialized_ = true;
  }
  return *joint_;
}

const TrainingProgram& Walk::partition() {
  if (!partition_) partition_ = driver_.run("partition", joint().graph->nodes.size(), [&] { return split(joint()); });
  return *partition_;
}

std::shared_ptr<const Executable> Walk::executable() {
  LoweringScope scope(options_.lowering);
  if (!executable_) executable_ = prepare(functional(), driver_, StageName::packed, options_.packing);
  return executable_;
}

std::shared_ptr<const Executable> Walk::executable_after(StageName stage) {
  LoweringScope scope(options_.lowering);
  return prepare(functional(), driver_, stage, options_.packing);
}

std::shared_ptr<const Executable> prepare(const FunctionalProgram& functional, PassDriver& driver, StageName until,
                                          const optimize::PackOptions& packing) {
  auto out = std::make_shared<Executable>();
  out->convention = functional.convention;
  Graph plain =
      driver.run("decompose", functional.graph->nodes.size(), [&] { return decompose(functional.graph.body()); });
  out->program = driver.run("lower", plain->nodes.size(), [&] { return lower(plain.body(), functional.convention); });
  auto pass = [&](const char* name, StageName stage, auto&& run) {
    if (until < stage) return;
    size_t before = out->program.on_state.size() + out->program.steps.size();
    out->program = driver.run(name, before, [&] { return run(std::move(out->program)); });
  };
  using loop::Program;
  pass("fold_state", StageName::folded,
       [](Program p) { return optimize::fold_state(std::move(p), {.trivial = false}); });
  pass("fuse", StageName::fused, optimize::fuse);
  // Again: of constants and copies those are left now that no reader could take in.
  pass("fold_state", StageName::fused, [](Program p) { return optimize::fold_state(std::move(p)); });
  pass("fold_scales", StageName::packed, optimize::fold_scales);
  pass("add_epilogues", StageName::packed, optimize::add_epilogues);
  pass("assign_layouts", StageName::packed, optimize::assign_layouts);
  pass("split_sums", StageName::packed, optimize::split_sums);
  pass("turn_products", StageName::packed, optimize::turn_products);
  pass("pack_weights", StageName::packed, [&](Program p) { return optimize::pack_weights(std::move(p), packing); });
  return out;
}
std::shared_ptr<const Executable> prepare(const FunctionalProgram& functional, StageName until) {
  PassDriver driver;
  return prepare(functional, driver, until);
}

std::string show(Walk& walk, StageName after) {
  switch (after) {
    case StageName::read: return to_text(walk.program());
    case StageName::normalized: return to_text(walk.normalized().body());
    case StageName::functional: return labelled(walk.functional().graph.body(), walk.functional().convention);
    case StageName::joint: return labelled(walk.joint().graph.body(), walk.joint().convention);
    case StageName::partition: {
      const TrainingProgram& halves = walk.partition();
      return "forward:\n" + labelled(halves.forward.graph.body(), halves.forward.convention) + "\nbackward:\n" +
             to_text(
                 halves.backward.graph.body(),
                 [&](const GraphBody&, size_t i) { return to_text(halves.backward.convention.inputs[i]); },
                 [&](const GraphBody&, size_t i) {  // gradients are of the forward's inputs
                   return to_text(halves.backward.convention.outputs[i], halves.forward.convention);
                 });
    }
    case StageName::loops:
    case StageName::folded:
    case StageName::fused:
    case StageName::packed: return to_text(walk.executable_after(after)->program);
    case StageName::kernels: {
      std::shared_ptr<const Executable> executable = walk.executable();
      return plan::to_text(plan::make_tables(executable->program, executable->convention, {.described = true}));
    }
  }
  unreachable();
}

std::unique_ptr<State> state_of(const ExportedProgram& program, uint64_t seed) {
  auto state = std::make_unique<State>(seed);
  for (const auto* list : {&program.state, &program.constants})
    for (const NamedTensor& t : *list) {
      require(!t.absent, "the file has no contents for ", t.name, ", expected ", t.tensor.meta(),
              ": the model was exported without its weights; export it with them to run it");
      if (!state->find(t.name)) state->add(t.name, t.tensor);
    }
  return state;
}

namespace {

std::string pattern_of(const std::vector<Sharing>& sharings) {
  std::string key;
  for (const Sharing& s : sharings) {
    key += text("memory of ", s.elements, ":");
    for (size_t k = 0; k < s.inputs.size(); ++k)
      key += text(" ", s.inputs[k], " ", s.places[k], "+", s.places[k].offset);
    key += ";";
  }
  return key;
}

/// The caller's tensors with those that will be written replaced by copies, which share memory as the originals do.
std::vector<CallArg> copies_of_written(const Executable& executable, std::vector<CallArg> inputs) {
  std::unordered_map<const Storage*, std::shared_ptr<Storage>> copies;
  for (size_t i = 0; i < executable.program.inputs.size(); ++i) {
    auto* user = std::get_if<input::User>(&executable.convention.inputs[i]);
    if (!user || !executable.program.inputs[i].written) continue;
    if (auto* t = inputs[user->leaf].get<Tensor>(); t && *t) copies[t->storage().get()] = nullptr;
  }
  for (CallArg& input : inputs) {
    auto* t = input.get<Tensor>();
    auto found = t && *t ? copies.find(t->storage().get()) : copies.end();
    if (found == copies.end()) continue;
    if (!found->second) {
      found->second = std::make_shared<Storage>(found->first->size());
      if (found->first->size() > 0)
        std::memcpy(found->second->mutable_data(), found->first->data(), found->first->size());
    }
    input = Tensor(t->meta(), found->second);
  }
  return inputs;
}

RunResult run_once(std::shared_ptr<const Executable> executable, const ExportedProgram& program,
                   const std::vector<CallArg>& inputs, const RunProgramOptions& options) {
  std::unique_ptr<State> state = state_of(program, options.seed);
  std::vector<CallArg> own =
      inputs.size() >= executable->convention.user_inputs.size() ? copies_of_written(*executable, inputs) : inputs;
  return Session(std::move(executable)).run(*state, own, {.absent_are_ones = options.absent_are_ones});
}

}  // namespace

std::shared_ptr<const Executable> Executables::for_inputs(const std::vector<CallArg>& inputs) {
  require_runnable(program_);
  std::string key = pattern_of(sharings_of(program_, inputs));
  std::lock_guard lock(mutex_);
  auto& slot = by_pattern_[key];
  if (slot) return slot;
  if (before_preparing) before_preparing();
  Walk walk(program_, {.inputs = inputs});
  slot = walk.executable();
  if (after_preparing) after_preparing(walk.passes());
  return slot;
}

Compilable prepare_to_compile(Walk& walk) {
  const ExportedProgram& program = walk.program();
  require_runnable(program);
  Compilable out;
  try {
    if (auto samples = program.samples ? program.samples() : std::nullopt) out.samples = std::move(samples->leaves);
  } catch (const Error& e) { out.warning = text("the sample inputs are left out: ", e.what()); }
  if (out.samples && !sharings_of(program, *out.samples).empty() &&
      !Walk(program, {.inputs = *out.samples}).functional().convention.sharing.empty()) {
    out.samples.reset();
    out.warning =
        "the sample inputs are left out: they share memory that the program writes, and a compiled program "
        "takes arguments with memory of their own";
  }
  if (!program.module_calls.empty() && program.module_calls[0].signature)
    if (auto& names = program.module_calls[0].signature->forward_arg_names) out.parameters = *names;
  out.executable = walk.executable();
  out.state = state_of(program);
  return out;
}

RunResult run_functional(const FunctionalProgram& functional, const ExportedProgram& program,
                         const std::vector<CallArg>& inputs, const RunProgramOptions& options) {
  return run_once(prepare(functional, options.until), program, inputs, options);
}

RunResult run_program(const ExportedProgram& program, const std::vector<CallArg>& inputs,
                      const RunProgramOptions& options) {
  Walk walk(program, {.inputs = inputs});
  return run_program(walk, inputs, options);
}

RunResult run_program(Walk& walk, const std::vector<CallArg>& inputs, const RunProgramOptions& options) {
  auto executable = options.until == StageName::packed ? walk.executable() : walk.executable_after(options.until);
  return run_once(std::move(executable), walk.program(), inputs, options);
}

ExportedProgram differentiate(const ExportedProgram& program, size_t of, const Wrt& wrt) {
  Walk walk(program, {.of = of, .wrt = wrt});
  return differentiate(walk);
}

ExportedProgram differentiate(Walk& walk) { return to_exported(walk.joint(), walk.program()); }

}  // namespace tenon

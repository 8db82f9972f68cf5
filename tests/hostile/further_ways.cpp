#include "tests/hostile/further_ways.h"

#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/dialect/verify_dialect.h"
#include "tenon/export/compare_programs.h"
#include "tenon/export/module_tree.h"
#include "tenon/export/print.h"
#include "tenon/export/serde/load.h"
#include "tenon/export/serde/save.h"
#include "tenon/modules/unflatten.h"
#include "tenon/passes/check_metas.h"
#include "tenon/pipeline.h"
#include "tenon/rules/registry.h"
#include "tenon/train/mode.h"
#include "tenon/train/training_step.h"
#include "tests/hostile/sample_values.h"

namespace tenon {
namespace {

using Arguments = std::vector<CallArg>;

// A run may write to its arguments.
Arguments copies_of(const Arguments& arguments) {
  Arguments out;
  for (const CallArg& a : arguments) {
    auto* t = a.get<Tensor>();
    out.push_back(t && *t ? CallArg(contiguous_copy(*t)) : a);
  }
  return out;
}

// Written, printed, read again, and run.
void go_on_with(const ExportedProgram& program, const Arguments* arguments) {
  to_text(program);
  std::string json = to_json(program);
  reached([&] {
    ExportedProgram again = read_program(json, "written", registry());
    provide_state(again);
    verify(again);
    check_metas(again.graph.body(), again.hints);
  });
  if (arguments) reached([&] { run_program(program, *arguments, {.absent_are_ones = true}); });
}

void in_a_dialect(const ExportedProgram& program, const Arguments* arguments, Dialect dialect) {
  ExportedProgram made = run_decompositions(program, {.to = dialect});
  reached([&] { verify_dialect(made, dialect); });
  to_text(compare_programs(program, made));
  go_on_with(made, arguments);
}
void in_aten(const ExportedProgram& program, const Arguments* arguments, uint64_t) {
  in_a_dialect(program, arguments, Dialect::aten);
}
void in_core(const ExportedProgram& program, const Arguments* arguments, uint64_t) {
  in_a_dialect(program, arguments, Dialect::core);
}

void in_the_other_mode(const ExportedProgram& program, const Arguments* arguments, uint64_t choice) {
  for (Mode mode : {choice % 2 == 0 ? Mode::train : Mode::eval, choice % 2 == 0 ? Mode::eval : Mode::train})
    reached([&] {
      ExportedProgram made = in_mode(program, mode);
      to_text(compare_programs(program, made));
      go_on_with(made, arguments);
    });
}

Wrt chosen_wrt(const ExportedProgram& program, uint64_t choice) {
  std::vector<std::string> names;
  for (const InputSpec& spec : program.signature.inputs) names.push_back(spec.target.empty() ? spec.name : spec.target);
  if (choice % 4 == 0) return parse_wrt("parameters");
  if (choice % 4 == 1 || names.empty()) return parse_wrt("all");
  return {.parameters = false, .inputs = false, .names = {names[choice / 4 % names.size()]}};
}

size_t outputs_of(const ExportedProgram& program) {
  size_t count = 0;
  for (const OutputSpec& spec : program.signature.outputs) count += spec.kind == OutputKind::user_output;
  return count;
}

// With cotangents of ones.
void run_gradients(const ExportedProgram& joint, const Arguments* arguments) {
  if (!arguments) return;
  Arguments more = *arguments;
  size_t asked = 0;
  for (const InputSpec& spec : joint.signature.inputs) asked += spec.kind == InputKind::user_input;
  more.resize(std::max(asked, more.size()));
  reached([&] { run_program(joint, more, {.absent_are_ones = true}); });
}

void differentiated(const ExportedProgram& program, const Arguments* arguments, uint64_t choice) {
  Wrt wrt = chosen_wrt(program, choice);
  Walk walk(program, {.of = choice / 64 % std::max<size_t>(1, outputs_of(program)),
                      .wrt = wrt,
                      .memory_budget = 0.25 * static_cast<double>(choice / 16 % 4)});
  reached([&] { show(walk, StageName::partition); });
  ExportedProgram joint = differentiate(walk);
  go_on_with(joint, nullptr);
  run_gradients(joint, arguments);
  ExportedProgram twice = differentiate(joint, outputs_of(joint), parse_wrt("inputs"));
  go_on_with(twice, nullptr);
  run_gradients(twice, arguments);
}

Arguments with_targets(const Arguments& arguments, const std::vector<train::Target>& targets) {
  Arguments out = copies_of(arguments);
  for (const train::Target& target : targets) {
    Sizes sizes;
    for (SymInt size : target.meta.sizes) {
      require(size.is_int(), "a target of a size that only the run tells");
      sizes.push_back(size);
    }
    out.emplace_back(sample_tensor(make_meta(target.meta.dtype, sizes)));
  }
  return out;
}

void run_step(const ExportedProgram& program, const train::TrainingStep& step, const FunctionalProgram& functional,
              const Arguments& arguments) {
  std::unique_ptr<State> state = train::initial_state(step, program);
  Session session(prepare(functional));
  session.run(*state, with_targets(arguments, step.targets));
}

void trained(const ExportedProgram& program, const Arguments* arguments, uint64_t choice) {
  static constexpr const char* losses[] = {"mse", "cross_entropy", "mse", "bce_with_logits"};
  static constexpr const char* optimizers[] = {"sgd,momentum=0.9", "adamw", "rmsprop", "adagrad"};
  train::Loss loss = train::loss_named(choice / 128 % 8 == 0 ? "none" : losses[choice % 4]);
  ExportedProgram training = in_mode(program, Mode::train);
  train::TrainingOptions options;
  options.clip_norm = choice / 16 % 2 == 0 ? 0 : 1;
  options.accumulate = choice / 32 % 2 == 0 ? 1 : 2;
  options.precision = choice / 64 % 2 == 0 ? train::Precision::full : train::Precision::bf16;
  train::TrainingStep step =
      train::make_training_step(training, loss, train::optimizer_named(optimizers[choice / 4 % 4]), options);
  if (!arguments) return;
  if (step.accumulate) reached([&] { run_step(program, step, *step.accumulate, *arguments); });
  reached([&] { run_step(program, step, step.update, *arguments); });
  reached([&] {
    train::Evaluation evaluation = train::make_evaluation(in_mode(program, Mode::eval), loss);
    run_functional(evaluation.program, program, with_targets(*arguments, evaluation.targets));
  });
}

void compiled(const ExportedProgram& program, const Arguments* arguments, uint64_t choice) {
  Walk walk(program);
  Compilable made = prepare_to_compile(walk);
  reached([&] { show(walk, StageName::kernels); });
  if (choice / 2 % 4 == 0) {
    auto interpreted = artifact::interpret_compiled(*made.executable, *made.state);
    artifact::CompiledState state(interpreted);
    if (arguments) reached([&] { artifact::CompiledSession(interpreted).run(state, copies_of(*arguments)); });
  }
  artifact::CompileOptions options;
  options.updatable = choice % 2 == 0;
  std::optional<artifact::Target> native = artifact::native_target();
  require(native.has_value(), "nothing that is compiled runs here");
  options.targets = {*native};
  auto loaded = artifact::CompiledProgram::open(artifact::compile_program(*made.executable, *made.state, options),
                                                {.threads = 1});
  artifact::CompiledState state(loaded);
  for (const std::string& name : state.names()) state.get(name);
  if (!arguments) return;
  artifact::CompiledSession session(loaded);
  for (int run = 0; run < 2; ++run) session.run(state, copies_of(*arguments));
}

void by_modules(const ExportedProgram& program, const Arguments* arguments, uint64_t) {
  to_text(module_tree(program));
  Unflattened modules(program);
  if (!arguments) return;
  reached([&] { modules.call(copies_of(*arguments)); });
  for (const std::string& path : modules.modules())
    reached([&] {
      Arguments inputs;
      for (const Arg& arg : modules.module(path).takes) {
        const Value* v = arg.get<Value>();
        inputs.push_back(v ? CallArg(sample_tensor(modules.program().graph->info(*v).meta)) : CallArg());
      }
      modules.call_module(path, inputs);
    });
}

}  // namespace

const std::vector<FurtherWay>& further_ways() {
  static const std::vector<FurtherWay> all = {
      {"aten dialect", in_aten}, {"core dialect", in_core}, {"modes", in_the_other_mode}, {"gradients", differentiated},
      {"training", trained},     {"compiled", compiled},    {"modules", by_modules},
  };
  return all;
}

}  // namespace tenon

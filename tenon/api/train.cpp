#include <tenon/train.h>

#include "tenon/api/access.h"
#include "tenon/artifact/compile.h"
#include "tenon/autograd/record.h"
#include "tenon/interp/eager.h"
#include "tenon/pipeline.h"
#include "tenon/train/mode.h"
#include "tenon/train/runners.h"
#include "tenon/train/training_state.h"
#include "tenon/train/training_step.h"

namespace tenon::v0 {

using detail::Access;
using detail::guarded;
namespace train = tenon::train;

namespace {

enum Which : size_t { update, accumulate };

std::vector<Tensor> wrapped(std::span<const tenon::Tensor> tensors) {
  std::vector<Tensor> out;
  for (const tenon::Tensor& t : tensors) out.push_back(Access::wrap(t));
  return out;
}

tenon::Tensor unwrapped(const Tensor& t, const char* what) { return Access::unwrap(t, what); }

}  // namespace

/// Parts of the public descriptions, and what the library makes of them.
struct detail::Access::Functions {
  static train::Loss loss(const Loss& given, bool probabilities) {
    if (!given.function_) return train::loss_named(given.text_, probabilities);
    std::vector<tenon::TensorMeta> examples;
    for (const Tensor& t : given.targets_) examples.push_back(Access::unwrap(t, "an example of a target").meta());
    return {.name = "given",
            .targets =
                [examples](std::span<const tenon::TensorMeta> outputs) {
                  std::vector<train::Target> out;
                  for (size_t i = 0; i < examples.size(); ++i) {
                    tenon::Sizes sizes = examples[i].sizes;
                    if (!sizes.empty() && !outputs.empty() && outputs[0].rank() > 0) sizes[0] = outputs[0].sizes[0];
                    out.push_back({.name = examples.size() == 1 ? "target" : tenon::text("target_", i),
                                   .meta = tenon::make_meta(examples[i].dtype, sizes)});
                  }
                  return out;
                },
            .value =
                [f = given.function_](std::span<const tenon::Tensor> outputs, std::span<const tenon::Tensor> targets) {
                  tenon::autograd::Unrecorded unrecorded;
                  return unwrapped(f(wrapped(outputs), wrapped(targets)), "the loss that the function gives");
                },
            .right = {}};
  }

  static train::Optimizer optimizer(const Optimizer& given) {
    if (!given.rule_) return train::optimizer_named(given.text_);
    train::Optimizer out{
        .name = "given", .lr = given.lr_, .weight_decay = given.weight_decay_, .slots = {}, .update = {}};
    for (const Optimizer::Slot& slot : given.slots_) out.slots.push_back({slot.name, slot.initial});
    out.update = [rule = given.rule_](std::span<train::Trained> group, const train::UpdateContext& context) {
      tenon::autograd::Unrecorded unrecorded;
      for (train::Trained& p : group) {
        ParameterUpdate one{.value = Access::wrap(p.value),
                            .gradient = Access::wrap(p.gradient),
                            .slots = wrapped(p.slots),
                            .lr = Access::wrap(context.lr),
                            .step = Access::wrap(context.step),
                            .weight_decay = context.weight_decay};
        rule(one);
        auto same = [&](const Tensor& now, const tenon::Tensor& before, const char* what) {
          const tenon::Tensor& own = Access::unwrap(now, what);
          tenon::require(own.dtype() == before.dtype() && own.sizes() == before.sizes(), "the optimizer's rule: ", what,
                         ": expected ", before.meta(), ", got ", own.meta());
          return own;
        };
        tenon::require(one.slots.size() == p.slots.size(), "the optimizer's rule: expected ", p.slots.size(),
                       " slots, got ", one.slots.size());
        p.value = same(one.value, p.value, "a parameter's new value");
        for (size_t i = 0; i < p.slots.size(); ++i) p.slots[i] = same(one.slots[i], p.slots[i], "a slot's new value");
      }
    };
    return out;
  }
};

struct detail::TrainingBody : detail::Counted {
  ExportedProgram original;
  tenon::ExportedProgram training;
  train::TrainingStep step;
  std::shared_ptr<const tenon::Executable> executable;
  std::optional<train::Runners> runners;
  std::map<std::string, std::string> settings;
  int64_t accumulate = 1, micro = 0, updates = 0;
  uint64_t seed = 0;
};

void detail::retain(TrainingBody* body) noexcept { body->handles.fetch_add(1, std::memory_order_relaxed); }
void detail::release(TrainingBody* body) noexcept {
  if (body->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) delete body;
}

TrainingStep make_training_step(const ExportedProgram& program, const Loss& loss, const Optimizer& optimizer,
                                const TrainingOptions& options) {
  return guarded(ErrorKind::call, [&] {
    tenon::interp::install();
    detail::Shared<detail::TrainingBody> body(new detail::TrainingBody);
    body->original = program;
    const tenon::ExportedProgram& own = Access::unwrap(program);
    own.check_payloads();
    body->training = tenon::in_mode(own, tenon::Mode::train);
    train::TrainingOptions how{.schedule = {},
                               .clip_norm = options.clip_norm,
                               .clip_value = options.clip_value,
                               .accumulate = options.accumulate,
                               .frozen = options.freeze,
                               .groups = {},
                               .precision = train::precision_named(options.precision),
                               .memory_budget = options.memory_budget};
    for (const ParameterGroup& g : options.groups) how.groups.push_back({g.pattern, g.lr, g.weight_decay});
    if (!options.schedule.empty())
      how.schedule = train::schedule_named(
          options.schedule, {.steps = options.schedule_steps, .steps_per_epoch = options.schedule_steps});
    body->step = train::make_training_step(body->training, Access::Functions::loss(loss, false),
                                           Access::Functions::optimizer(optimizer), how);
    body->executable = tenon::prepare(body->step.update);
    std::vector<std::shared_ptr<const tenon::Executable>> programs = {body->executable};
    if (body->step.accumulate) programs.push_back(tenon::prepare(*body->step.accumulate));
    body->runners.emplace(std::move(programs), train::initial_state(body->step, own, options.seed),
                          train::RunnersOptions{.compile = options.compile, .threads = options.threads});
    body->accumulate = options.accumulate;
    body->seed = options.seed;
    body->settings = {{"accumulate", tenon::text(options.accumulate)}, {"precision", options.precision}};
    return TrainingStep(std::move(body));
  });
}

Tensor TrainingStep::run(const std::vector<Tensor>& batch) {
  return guarded(ErrorKind::call, [&] {
    std::vector<tenon::CallArg> inputs;
    for (const Tensor& t : batch) inputs.emplace_back(Access::unwrap(t, "a tensor of the batch"));
    bool last = body_->micro + 1 == body_->accumulate;
    tenon::RunResult result = body_->runners->run(last ? update : accumulate, inputs);
    body_->micro = last ? 0 : body_->micro + 1;
    body_->updates += last;
    return Access::wrap(result.outputs[0].as<tenon::Tensor>());
  });
}

int64_t TrainingStep::updates() const { return body_->updates; }
std::vector<std::string> TrainingStep::trained() const { return body_->step.trained; }
bool TrainingStep::compiled() const { return body_->runners->compiled(); }

Tensor TrainingStep::get(const std::string& name) const {
  return guarded(ErrorKind::call, [&] {
    const tenon::Tensor* found = body_->runners->state().find(name);
    tenon::require(found != nullptr, "the training has no state called ", tenon::quoted(name, 100));
    return Access::wrap(tenon::contiguous_copy(*found));
  });
}

ExportedProgram TrainingStep::program() const {
  return guarded(ErrorKind::call, [&] {
    tenon::ExportedProgram out = Access::unwrap(body_->original).copy();
    const tenon::State& now = body_->runners->state();
    for (auto* list : {&out.state, &out.constants})
      for (tenon::NamedTensor& t : *list)
        if (const tenon::Tensor* value = now.find(t.name)) t.tensor = tenon::contiguous_copy(*value);
    return Access::wrap(std::move(out));
  });
}

void TrainingStep::save(const std::string& path) const {
  guarded(ErrorKind::call, [&] {
    tenon::require(body_->micro == 0, "save: ", body_->micro, " of the ", body_->accumulate,
                   " batches to an update have been run; run the rest of them first");
    guarded(ErrorKind::file, [&] { train::save_training(path, body_->runners->state(), {}, body_->settings); });
  });
}

void TrainingStep::load(const std::string& path) {
  guarded(ErrorKind::file, [&] {
    auto fresh = train::initial_state(body_->step, Access::unwrap(body_->original), body_->seed);
    train::Saved saved = train::load_training(path, *fresh);
    for (const auto& [key, now] : body_->settings)
      tenon::require(saved.settings[key] == now, path, ": it was started with ", key, " ",
                     tenon::quoted(saved.settings[key]), ", and now it is ", tenon::quoted(now));
    body_->updates = tenon::scalar_integer(*fresh->find("optimizer.step"));
    body_->runners->replace_state(std::move(fresh));
    body_->micro = 0;
  });
}

void TrainingStep::compile(const std::string& path) const {
  guarded(ErrorKind::file, [&] {
    tenon::artifact::CompileOptions how;
    how.updatable = true;
    tenon::artifact::compile_program(*body_->executable, body_->runners->state(), path, how);
  });
}

}  // namespace tenon::v0

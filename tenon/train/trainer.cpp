#include "tenon/train/trainer.h"

#include <algorithm>

#include "tenon/artifact/compile.h"
#include "tenon/interp/bind_symbols.h"
#include "tenon/pipeline.h"
#include "tenon/train/mode.h"

namespace tenon::train {
namespace {

Score score_of(const RunResult& result, int64_t samples, bool counts_right) {
  Score score;
  score.samples = samples;
  score.loss = scalar_value(result.outputs[0].as<Tensor>()) * static_cast<double>(samples);
  if (counts_right) {
    score.right = scalar_integer(result.outputs[1].as<Tensor>());
    score.counted = scalar_integer(result.outputs[2].as<Tensor>());
  }
  return score;
}

void add_to(Score& sum, const Score& score) {
  sum.samples += score.samples;
  sum.right += score.right;
  sum.counted += score.counted;
  sum.loss += score.loss;
}

enum Which : size_t { update, evaluate_only, accumulate };

int64_t updates_in(const State& state) { return scalar_integer(*state.find("optimizer.step")); }

/// The size that the program's first tensor has for samples.
SymInt batch_of(const ExportedProgram& program) {
  for (const InputSpec& spec : program.signature.inputs)
    if (const Value* v = spec.arg.get<Value>(); v && spec.kind == InputKind::user_input)
      if (const TensorMeta& meta = program.graph->info(*v).meta; meta.rank() > 0) return meta.sizes[0];
  return 1;
}

}  // namespace

std::optional<double> Score::accuracy() const {
  if (counted == 0) return std::nullopt;
  return static_cast<double>(right) / static_cast<double>(counted);
}

Trainer::Trainer(const ExportedProgram& program, const std::string& data, const std::string& held_out,
                 const TrainerOptions& options)
    : original_(program), options_(options) {
  require(options_.epochs >= 1, "expected 1 epoch or more, got ", options_.epochs);
  training_ = in_mode(program, Mode::train);
  Loss loss = loss_named(options_.loss, starts_with(options_.loss, "cross_entropy") && has_real_target(data));
  Optimizer optimizer = optimizer_named(options_.optimizer);
  evaluating_ = in_mode(program, Mode::eval);
  evaluation_ = make_evaluation(evaluating_, loss);
  data_.emplace(data, training_, evaluation_.targets);
  if (!held_out.empty()) held_out_.emplace(held_out, evaluating_, evaluation_.targets);

  // The batch is chosen by what the evaluation takes: the same inputs under the same ranges.
  evaluate_ = prepare(evaluation_.program);
  choose_batch();
  TrainingOptions how{.schedule = {},
                      .clip_norm = options_.clip_norm,
                      .clip_value = options_.clip_value,
                      .accumulate = options_.accumulate,
                      .frozen = options_.frozen,
                      .groups = options_.groups,
                      .precision = precision_named(options_.precision),
                      .memory_budget = options_.memory_budget};
  int64_t per_epoch = (batches_ + options_.accumulate - 1) / std::max<int64_t>(options_.accumulate, 1);
  if (!options_.schedule.empty())
    how.schedule =
        schedule_named(options_.schedule, {.steps = per_epoch * options_.epochs, .steps_per_epoch = per_epoch});
  step_ = make_training_step(training_, loss, optimizer, how);
  update_ = prepare(step_.update);
  std::vector<std::shared_ptr<const Executable>> programs = {update_, evaluate_};
  if (step_.accumulate) programs.push_back(prepare(*step_.accumulate));
  runners_.emplace(std::move(programs), initial_state(step_, program, options_.seed), options_.run);
}
Trainer::~Trainer() = default;

std::optional<std::string> Trainer::why_not(int64_t batch) const {
  std::vector<int64_t> first(static_cast<size_t>(batch));
  for (size_t i = 0; i < first.size(); ++i) first[i] = static_cast<int64_t>(i) % data_->samples();
  std::vector<CallArg> given = data_->batch(first), bound;
  for (const InputMeaning& m : evaluate_->convention.inputs) {
    auto* user = std::get_if<input::User>(&m);
    bound.push_back(user ? given[user->leaf] : CallArg());
  }
  sym::Bindings symbols;
  return interp::why_not_bound(evaluate_->program.inputs, evaluate_->program.ranges, bound, symbols);
}

void Trainer::choose_batch() {
  SymInt fixed = batch_of(training_);
  if (options_.batch == 0) options_.batch = fixed.is_int() ? fixed.as_int() : std::min<int64_t>(64, data_->samples());
  require(options_.batch >= 1, "batch: expected 1 sample or more, got ", options_.batch);
  if (auto reason = why_not(options_.batch))
    fail("a batch of ", options_.batch, ": ", *reason, "; choose a batch within what the program was exported for");
  int64_t samples = data_->samples(), rest = samples % options_.batch;
  drops_last_ = rest != 0 && why_not(rest).has_value();
  batches_ = samples / options_.batch + (rest != 0 && !drops_last_);
  require(batches_ > 0, data_->path(), ": it has ", samples, " samples, fewer than a batch of ", options_.batch,
          ", and the program takes no smaller one");
}

int64_t Trainer::samples_per_epoch() const { return drops_last_ ? batches_ * options_.batch : data_->samples(); }

Score Trainer::step() {
  if (ended_) {
    epoch_ = {};
    ended_ = false;
  }
  if (order_epoch_ != position_.epoch) {
    order_ = shuffled(data_->samples(), options_.seed, position_.epoch);
    order_epoch_ = position_.epoch;
  }
  auto first = static_cast<size_t>(position_.batch * options_.batch);
  size_t count = std::min(static_cast<size_t>(options_.batch), order_.size() - first);
  std::vector<CallArg> batch = data_->batch(std::span(order_).subspan(first, count));
  bool last_of_epoch = position_.batch + 1 == batches_;
  bool updates_now = last_of_epoch || (position_.batch + 1) % options_.accumulate == 0;
  Score score;
  try {
    score = score_of(runners_->run(updates_now ? update : accumulate, batch), static_cast<int64_t>(count),
                     step_.counts_right);
  } catch (const Error& error) {
    if (std::string_view(error.what()).find(not_finite) == std::string_view::npos) throw;
    fail("at step ", updates() + 1, " (epoch ", position_.epoch + 1, ", batch ", position_.batch + 1, "): ", not_finite,
         "; try a smaller learning rate or clip the gradients");
  }
  updates_ += updates_now;
  add_to(epoch_, score);
  ++position_.batch;
  position_.samples = epoch_.samples;
  position_.right = epoch_.right;
  position_.counted = epoch_.counted;
  position_.loss = epoch_.loss;
  if (last_of_epoch) {
    position_ = {.epoch = position_.epoch + 1};
    ended_ = true;
  }
  return score;
}

Score Trainer::evaluate() {
  require(held_out_.has_value(), "there are no held-out data to evaluate on");
  Score sum;
  for (int64_t first = 0; first < held_out_->samples(); first += options_.batch) {
    int64_t count = std::min(options_.batch, held_out_->samples() - first);
    if (count < options_.batch && why_not(count)) break;
    std::vector<int64_t> samples(static_cast<size_t>(count));
    for (size_t i = 0; i < samples.size(); ++i) samples[i] = first + static_cast<int64_t>(i);
    RunResult result = runners_->run(evaluate_only, held_out_->batch(samples), true);
    add_to(sum, score_of(result, count, evaluation_.counts_right));
  }
  require(sum.samples > 0, held_out_->path(), ": it has ", held_out_->samples(), " samples, fewer than a batch of ",
          options_.batch, ", and the program takes no smaller one");
  return sum;
}

std::map<std::string, std::string> Trainer::settings() const {
  std::string frozen = join(options_.frozen, " "), groups;
  for (const ParameterGroup& g : options_.groups)
    groups += text(groups.empty() ? "" : " ", g.pattern, g.lr ? text(",lr=", *g.lr) : std::string(),
                   g.weight_decay ? text(",weight_decay=", *g.weight_decay) : std::string());
  return {{"loss", options_.loss},
          {"optimizer", options_.optimizer},
          {"schedule", options_.schedule},
          {"batch", text(options_.batch)},
          {"accumulate", text(options_.accumulate)},
          {"clip-norm", text(options_.clip_norm)},
          {"clip-value", text(options_.clip_value)},
          {"precision", options_.precision},
          {"freeze", frozen},
          {"group", groups},
          {"samples", text(data_->samples())},
          {"seed", text(options_.seed)}};
}

void Trainer::save(const std::string& path) {
  std::string bad = not_finite_in(state());
  require(
      bad.empty(), "after step ", updates(), ": ", bad,
      " has numbers that are not finite; the state was not saved; try a smaller learning rate or clip the gradients");
  save_training(path, state(), position_, settings());
}

void Trainer::resume(const std::string& path) {
  std::unique_ptr<State> fresh = initial_state(step_, original_, options_.seed);
  Saved saved = load_training(path, *fresh);
  for (const auto& [key, now] : settings()) {
    const std::string& then = saved.settings[key];
    require(then == now, path, ": it was started with ", key, " ", quoted(then), ", and now it is ", quoted(now),
            "; resume with the same data and options");
  }
  const Position& p = saved.position;
  require(p.epoch >= 0 && p.batch >= 0 && p.batch < batches_, path, ": its position, batch ", p.batch, " of epoch ",
          p.epoch + 1, ", is outside the data, which has ", batches_, " batches");
  updates_ = updates_in(*fresh);
  runners_->replace_state(std::move(fresh));
  position_ = p;
  epoch_ = {.samples = p.samples, .right = p.right, .counted = p.counted, .loss = p.loss};
  ended_ = false;
}

void Trainer::compile_step(const std::string& path) {
  artifact::CompileOptions how;
  how.updatable = true;
  artifact::compile_program(*update_, state(), path, how);
}

ExportedProgram Trainer::trained() {
  ExportedProgram out = original_.copy();
  const State& now = state();
  for (auto* list : {&out.state, &out.constants})
    for (NamedTensor& t : *list)
      if (const Tensor* value = now.find(t.name)) t.tensor = *value;
  return out;
}

}  // namespace tenon::train

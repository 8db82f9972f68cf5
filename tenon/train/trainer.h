// The loop of training: batches in a shuffled order, updates, evaluation, saving and going on.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "tenon/train/data.h"
#include "tenon/train/runners.h"
#include "tenon/train/training_state.h"
#include "tenon/train/training_step.h"

namespace tenon::train {

struct TrainerOptions {
  std::string loss = "cross_entropy";  // as loss_named, optimizer_named and schedule_named read them
  std::string optimizer = "adamw";
  std::string schedule;  // empty: constant
  int64_t epochs = 1;
  int64_t batch = 0;  // 0: what the program was exported for, or 64 where it takes any
  int64_t accumulate = 1;
  double clip_norm = 0, clip_value = 0;
  std::optional<double> memory_budget;  // of the backward; none: everything is kept
  std::string precision = "full";       // or bf16: what the products of training are computed in
  std::vector<std::string> frozen;
  std::vector<ParameterGroup> groups;
  uint64_t seed = 0;   // of the order of samples and of random operators
  RunnersOptions run;  // changes nothing but rounding and speed
};

/// The mean loss over samples, and how many answers are right where they can be.
struct Score {
  int64_t samples = 0, right = 0, counted = 0;
  double loss = 0;  // sum over samples
  double mean_loss() const { return samples > 0 ? loss / static_cast<double>(samples) : 0; }
  std::optional<double> accuracy() const;  // 0 to 1
};

/// Trains a copy of a program's state. The program is trained in training mode and evaluated in evaluation mode, and
/// stays what it is. Everything depends on the options, the data and the seed alone: a training that is saved and
/// resumed gives the same bits as one that is not.
class Trainer {
 public:
  /// The program must outlive the trainer. `data` is the file to train on, `held_out` one to evaluate on, or empty.
  /// What can be wrong is found here, before the first step.
  Trainer(const ExportedProgram& program, const std::string& data, const std::string& held_out,
          const TrainerOptions& options);
  ~Trainer();

  int64_t batches_per_epoch() const { return batches_; }  // micro-batches
  int64_t samples_per_epoch() const;                      // the last short batch may be dropped
  bool drops_last() const { return drops_last_; }
  int64_t batch_size() const { return options_.batch; }
  int64_t updates() const { return updates_; }  // so far
  const Position& position() const { return position_; }
  const TrainingStep& training_step() const { return step_; }
  State& state() { return runners_->state(); }
  const Runners& runners() const { return *runners_; }
  bool done() const { return position_.epoch >= options_.epochs; }

  /// Runs the next micro-batch and gives its score. A loss that is not finite is an Error that says at which step;
  /// nothing is written then. After the last batch of an epoch epoch() has the score of it.
  Score step();
  /// The score of the epoch that is going on, or of the one that has just ended.
  const Score& epoch() const { return epoch_; }
  bool ended_epoch() const { return ended_; }
  Score evaluate();  // on the held-out data

  void save(const std::string& path);
  /// Goes on from a file that save() wrote; an Error where it was started with other settings.
  void resume(const std::string& path);
  /// Writes an update, with the state as it is now, as a shared library for <tenon/runtime.h>: a run takes a batch and
  /// gives the loss, and its state learns.
  void compile_step(const std::string& path);
  /// The program with the trained state, in the mode it came in.
  ExportedProgram trained();

 private:
  std::map<std::string, std::string> settings() const;
  void choose_batch();
  /// Why the program does not take batches of so many samples; nothing where it does.
  std::optional<std::string> why_not(int64_t batch) const;

  const ExportedProgram& original_;
  TrainerOptions options_;
  ExportedProgram training_, evaluating_;  // the program in both modes
  TrainingStep step_;
  Evaluation evaluation_;
  std::optional<Data> data_, held_out_;
  std::shared_ptr<const Executable> update_, evaluate_;
  std::optional<Runners> runners_;
  int64_t updates_ = 0;
  Position position_;
  Score epoch_;
  bool ended_ = false, drops_last_ = false;
  int64_t batches_ = 0;
  std::vector<int64_t> order_;
  int64_t order_epoch_ = -1;
};

}  // namespace tenon::train

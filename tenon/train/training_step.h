// A program, a loss and an optimizer as one program that learns.
#pragma once
#include <optional>

#include "tenon/aot/functionalize.h"
#include "tenon/session/state.h"
#include "tenon/train/loss.h"
#include "tenon/train/optimizer.h"
#include "tenon/train/precision.h"

namespace tenon::train {

/// Parameters whose names match, with a learning rate or a weight decay of their own.
struct ParameterGroup {
  std::string pattern;  // * stands for any characters, ? for one: "*.bias"
  std::optional<double> lr, weight_decay;
};

struct TrainingOptions {
  Schedule schedule;                   // empty: the learning rate stays
  double clip_norm = 0;                // the largest norm of all gradients together; 0: any
  double clip_value = 0;               // the largest element of a gradient; 0: any
  int64_t accumulate = 1;              // micro-batches to an update, whose gradients are averaged
  std::vector<std::string> frozen;     // patterns of parameters that stay as they are
  std::vector<ParameterGroup> groups;  // the first that matches counts
  bool master_weights = true;          // half precision parameters are kept in float32 too, and trained there
  Precision precision = Precision::full;
  std::optional<double> memory_budget;  // of the backward, from 0 to 1: see rematerialize; none: everything is kept
};

/// Something that training keeps beside the program's own state.
struct Kept {
  std::string name;  // optimizer.exp_avg.fc.weight, optimizer.step, gradient.fc.weight, master.fc.weight
  TensorMeta meta;
  double initial = 0;   // of every element
  std::string copy_of;  // where not empty: it starts as the contents of this parameter
};

/// Pure graphs over one state, to be prepared and run like any other. Their inputs are the program's, then the loss's
/// targets; their results the loss and, where the loss counts them, how many answers are right and of how many.
/// Parameters, buffers, what the optimizer keeps and the count of updates are Updated outputs: a run writes them in
/// place. Where the loss is not a finite number the run fails with `not_finite`, and nothing has been written.
struct TrainingStep {
  FunctionalProgram update;                     // forward, backward, optimizer
  std::optional<FunctionalProgram> accumulate;  // forward and backward: the micro-batches before the last
  std::vector<Target> targets;
  std::vector<Kept> kept;
  std::vector<std::string> trained;    // names of the parameters that the optimizer changes
  std::vector<std::string> unreached;  // that it would change, but that the loss does not depend on
  bool counts_right = false;
};

inline constexpr const char* not_finite = "the loss is not a finite number";

/// Joins the functional program with a loss and an optimizer. The program is taken in the mode it has (see in_mode). An
/// Error where the outputs do not suit the loss, where nothing is left to train, where trained parameters overlap in
/// memory, or where a pattern matches no parameter.
TrainingStep make_training_step(const ExportedProgram& program, const Loss& loss, const Optimizer& optimizer,
                                const TrainingOptions& options = {});

/// The program followed by the loss: the same inputs and results, nothing is trained.
struct Evaluation {
  FunctionalProgram program;
  std::vector<Target> targets;
  bool counts_right = false;
};
Evaluation make_evaluation(const ExportedProgram& program, const Loss& loss);

/// The program's state with what training keeps added.
std::unique_ptr<State> initial_state(const TrainingStep& step, const ExportedProgram& program, uint64_t seed = 0);

/// Whether a name matches a pattern of * and ?.
bool matches(const std::string& pattern, const std::string& name);

}  // namespace tenon::train

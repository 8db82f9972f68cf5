// Training: a program is joined with a loss and an optimizer into one program that learns.
#pragma once
#include <tenon/function.h>
#include <tenon/program.h>
#include <tenon/tensor.h>

#include <optional>

namespace tenon::TENON_INLINE v0 {

/// What training minimizes: by name, with options, as `tenon train --loss` takes it (cross_entropy, mse,
/// bce_with_logits, none), or an ordinary function that is traced once.
class TENON_PUBLIC Loss {
 public:
  using Function = v0::Function<Tensor(const std::vector<Tensor>& outputs, const std::vector<Tensor>& targets)>;
  Loss(const char* text) : text_(text) {}
  Loss(std::string text) : text_(std::move(text)) {}
  /// A scalar of the program's outputs, several of them where it has several, and of targets. The examples say the
  /// targets' dtypes and sizes; their first dimension is that of output 0, the batch.
  Loss(Function function, std::vector<Tensor> targets = {})
      : function_(std::move(function)), targets_(std::move(targets)) {}

 private:
  friend struct detail::Access;
  std::string text_;
  Function function_;
  std::vector<Tensor> targets_;
};

/// One parameter at an update. A rule replaces the value and the slots by the new ones.
struct ParameterUpdate {
  Tensor value, gradient;
  std::vector<Tensor> slots;  // what the optimizer keeps of it
  Tensor lr, step;            // f64[]; the first step is 1
  double weight_decay = 0;
};

/// How parameters change: by name, as `tenon train --optimizer` takes it ("adamw,lr=1e-3": sgd, adam, adamw, rmsprop,
/// adagrad with PyTorch's keywords and defaults), or an ordinary function that is traced once for each parameter.
class TENON_PUBLIC Optimizer {
 public:
  struct Slot {
    std::string name;
    double initial = 0;  // of every element
  };
  using Rule = Function<void(ParameterUpdate& parameter)>;
  Optimizer(const char* text) : text_(text) {}
  Optimizer(std::string text) : text_(std::move(text)) {}
  Optimizer(Rule rule, double lr, double weight_decay = 0, std::vector<Slot> slots = {})
      : rule_(std::move(rule)), lr_(lr), weight_decay_(weight_decay), slots_(std::move(slots)) {}

 private:
  friend struct detail::Access;
  std::string text_;
  Rule rule_;
  double lr_ = 0, weight_decay_ = 0;
  std::vector<Slot> slots_;
};

struct ParameterGroup {
  std::string pattern;  // of names; * stands for any characters, ? for one
  std::optional<double> lr, weight_decay;
};

struct TrainingOptions {
  std::string schedule = {};        // of the learning rate: "cosine,warmup=100", as tenon train --schedule
  std::int64_t schedule_steps = 0;  // updates of the whole training, for schedules that must know
  double clip_norm = 0, clip_value = 0;
  std::int64_t accumulate = 1;  // calls to an update, whose gradients are averaged
  std::vector<std::string> freeze = {};
  std::vector<ParameterGroup> groups = {};   // the first that matches counts
  std::string precision = "full";            // or bf16: products in bf16, parameters in f32
  std::optional<double> memory_budget = {};  // of the backward, from 0 to 1 (docs/training.md); none: all is kept
  std::uint64_t seed = 0;
  bool compile = true;  // to machine code; else interpreted
  int threads = 0;      // 0: all of the machine's
};

/// A program that learns, and its state: parameters, buffers, what the optimizer keeps, the count of updates, random
/// draws. One thread at a time; several threads train several steps.
class TENON_PUBLIC TrainingStep {
 public:
  TrainingStep(TrainingStep&&) noexcept = default;
  TrainingStep& operator=(TrainingStep&&) noexcept = default;

  /// The program's inputs in order, then the targets. Gives the loss and updates the state. A loss that is not finite
  /// is an Error, and the state is as it was.
  Tensor run(const std::vector<Tensor>& batch);
  template <class... Tensors>
  requires(std::is_convertible_v<const Tensors&, Tensor>&&...) Tensor operator()(const Tensors&... batch) {
    return run({batch...});
  }

  std::int64_t updates() const;
  std::vector<std::string> trained() const;   // names of the parameters that the optimizer changes
  Tensor get(const std::string& name) const;  // a copy; also what the optimizer keeps: optimizer.exp_avg.fc.weight
  bool compiled() const;
  /// The program it was made from, in its own mode, with the state as it is now.
  ExportedProgram program() const;
  /// The state, in a file that appears whole or not at all, and back: training goes on with the same bits.
  void save(const std::string& path) const;
  void load(const std::string& path);
  /// The step and its state as a shared library that learns from C (<tenon/runtime.h>).
  void compile(const std::string& path) const;

 private:
  friend TENON_PUBLIC TrainingStep make_training_step(const ExportedProgram&, const Loss&, const Optimizer&,
                                                      const TrainingOptions&);
  explicit TrainingStep(detail::Shared<detail::TrainingBody> body) noexcept : body_(std::move(body)) {}
  detail::Shared<detail::TrainingBody> body_;
};

/// Trains a copy of the program's state, in training mode whatever mode it was exported in.
TENON_PUBLIC TrainingStep make_training_step(const ExportedProgram& program, const Loss& loss,
                                             const Optimizer& optimizer, const TrainingOptions& options = {});

}  // namespace tenon::TENON_INLINEv0

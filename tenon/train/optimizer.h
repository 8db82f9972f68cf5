// How parameters change. An optimizer's rule is an ordinary function over tensors: it is traced behind the gradients.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tenon/tensor/tensor.h"

namespace tenon::train {

/// One parameter: the rule replaces its value and its slots by the new ones.
struct Trained {
  Tensor value, gradient;
  std::vector<Tensor> slots;  // in the order of Optimizer::slots
};

/// What is the same for all parameters of a group.
struct UpdateContext {
  Tensor lr;    // f64[]
  Tensor step;  // f64[]: 1 at the first update
  double weight_decay = 0;
};

struct Optimizer {
  struct Slot {
    std::string name;    // exp_avg, as in PyTorch's state_dict
    double initial = 0;  // every element
  };
  std::string name;
  double lr = 0, weight_decay = 0;  // groups may have others
  std::vector<Slot> slots;
  std::function<void(std::span<Trained> group, const UpdateContext& context)> update;
};

// The update rules of torch.optim, its keyword names and defaults.
struct SgdOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};
Optimizer sgd(const SgdOptions& options = {});

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false, decoupled_weight_decay = false;
};
Optimizer adam(const AdamOptions& options = {});
Optimizer adamw(AdamOptions options = {.weight_decay = 1e-2});  // adam with decoupled weight decay

struct RmspropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};
Optimizer rmsprop(const RmspropOptions& options = {});

struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};
Optimizer adagrad(const AdagradOptions& options = {});

/// "adamw,lr=1e-3,betas=(0.9,0.99)"
Optimizer optimizer_named(const std::string& text);

/// The learning rate at an update, f64[]: `step` counts the updates before it (f64[]), `lr` is the group's own.
using Schedule = std::function<Tensor(const Tensor& step, double lr)>;

struct ScheduleLengths {
  int64_t steps = 0;            // updates of the whole training
  int64_t steps_per_epoch = 0;  // for per=epoch
};
/// "constant", "cosine", "linear", "step", "multistep", "exponential" or "onecycle" with the keyword names of
/// torch.optim.lr_scheduler, warmup=N for N updates from nothing to the learning rate, and per=epoch where it shall
/// change by epochs instead of by updates.
Schedule schedule_named(const std::string& text, const ScheduleLengths& lengths);

}  // namespace tenon::train

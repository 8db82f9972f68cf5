// Schedules: how the learning rate of an optimizer changes from step to step.
#pragma once
#include <tenon/optim/optimizer.h>

#include <memory>

namespace tenon::TENON_INLINE v0::optim {

/// Sets the learning rate of every group when it is made and at each step(), which follows the optimizer's own. The
/// rates are those of PyTorch's class of the same name; they follow from the number of steps alone.
class TENON_PUBLIC Schedule {
 public:
  virtual ~Schedule();
  void step();
  std::vector<double> last_lr() const;
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps);  // goes on from there: for training that is resumed

 protected:
  explicit Schedule(Optimizer& optimizer);
  virtual double rate(std::int64_t step, double initial) const = 0;
  virtual void set_others(std::int64_t step);  // what changes besides the learning rate
  Optimizer& optimizer() const { return optimizer_; }
  void restart() { set_steps(0); }

 private:
  friend class SequentialLR;
  Optimizer& optimizer_;
  std::int64_t steps_ = 0;
};

/// Times gamma every step_size steps.
class TENON_PUBLIC StepLR : public Schedule {
 public:
  StepLR(Optimizer& optimizer, std::int64_t step_size, double gamma = 0.1);

 private:
  double rate(std::int64_t step, double initial) const override;
  std::int64_t step_size_;
  double gamma_;
};

/// Times gamma at each milestone.
class TENON_PUBLIC MultiStepLR : public Schedule {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<std::int64_t> milestones, double gamma = 0.1);

 private:
  double rate(std::int64_t step, double initial) const override;
  std::vector<std::int64_t> milestones_;
  double gamma_;
};

/// Times gamma at every step.
class TENON_PUBLIC ExponentialLR : public Schedule {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  double rate(std::int64_t step, double initial) const override;
  double gamma_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3, end_factor = 1;
  std::int64_t total_iters = 5;
};
/// From start_factor to end_factor of the rate, in total_iters steps.
class TENON_PUBLIC LinearLR : public Schedule {
 public:
  explicit LinearLR(Optimizer& optimizer, const LinearLROptions& options = {});

 private:
  double rate(std::int64_t step, double initial) const override;
  LinearLROptions options_;
};

/// Down to eta_min along a cosine, in t_max steps.
class TENON_PUBLIC CosineAnnealingLR : public Schedule {
 public:
  CosineAnnealingLR(Optimizer& optimizer, std::int64_t t_max, double eta_min = 0);

 private:
  double rate(std::int64_t step, double initial) const override;
  std::int64_t t_max_;
  double eta_min_;
};

struct OneCycleLROptions {
  double max_lr = 0;
  std::int64_t total_steps = 0;
  double pct_start = 0.3;
  bool linear = false;  // instead of along a cosine
  bool cycle_momentum = true;
  double base_momentum = 0.85, max_momentum = 0.95, div_factor = 25, final_div_factor = 1e4;
  bool three_phase = false;
};
/// Up to max_lr and down again, the momentum (or beta1) the other way round.
class TENON_PUBLIC OneCycleLR : public Schedule {
 public:
  OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options);

 private:
  double rate(std::int64_t step, double initial) const override;
  void set_others(std::int64_t step) override;
  double between(std::int64_t step, double low, double high, double last) const;
  OneCycleLROptions options_;
};

/// One schedule after another: the next takes over at each milestone and starts from its beginning.
class TENON_PUBLIC SequentialLR : public Schedule {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<Schedule>> schedules,
               std::vector<std::int64_t> milestones);

 private:
  double rate(std::int64_t step, double initial) const override;
  void set_others(std::int64_t step) override;
  std::pair<std::size_t, std::int64_t> place(std::int64_t step) const;
  std::vector<std::shared_ptr<Schedule>> schedules_;  // shared: with whoever made them
  std::vector<std::int64_t> milestones_;
};

}  // namespace tenon::TENON_INLINEv0::optim

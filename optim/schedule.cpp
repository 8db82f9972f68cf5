#include <tenon/optim/schedule.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tenon::TENON_INLINE v0::optim {

// The rate that a schedule starts from is the group's own when the first schedule was made over it.
Schedule::Schedule(Optimizer& optimizer) : optimizer_(optimizer) {
  for (std::size_t g = 0; g < optimizer.groups(); ++g)
    if (std::isnan(optimizer.get(g, "initial_lr"))) optimizer.set(g, "initial_lr", optimizer.get(g, "lr"));
}
Schedule::~Schedule() = default;

void Schedule::set_steps(std::int64_t steps) {
  if (steps < 0)
    throw Error(ErrorKind::call, "a schedule: expected a number of steps of at least 0, got " + std::to_string(steps));
  steps_ = steps;
  for (std::size_t g = 0; g < optimizer_.groups(); ++g)
    optimizer_.set(g, "lr", rate(steps, optimizer_.get(g, "initial_lr")));
  set_others(steps);
}
void Schedule::step() { set_steps(steps_ + 1); }
void Schedule::set_others(std::int64_t) {}

std::vector<double> Schedule::last_lr() const {
  std::vector<double> out;
  for (std::size_t g = 0; g < optimizer_.groups(); ++g) out.push_back(optimizer_.get(g, "lr"));
  return out;
}

StepLR::StepLR(Optimizer& optimizer, std::int64_t step_size, double gamma)
    : Schedule(optimizer), step_size_(step_size), gamma_(gamma) {
  if (step_size < 1)
    throw Error(ErrorKind::call, "StepLR: expected a step_size of at least 1, got " + std::to_string(step_size));
  restart();
}
double StepLR::rate(std::int64_t step, double initial) const {
  return initial * std::pow(gamma_, static_cast<double>(step / step_size_));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<std::int64_t> milestones, double gamma)
    : Schedule(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  for (std::int64_t at : milestones_)
    if (at < 0)
      throw Error(ErrorKind::call, "MultiStepLR: expected milestones of at least 0, got " + std::to_string(at));
  restart();
}
double MultiStepLR::rate(std::int64_t step, double initial) const {
  auto passed = std::count_if(milestones_.begin(), milestones_.end(), [&](std::int64_t at) { return at <= step; });
  return initial * std::pow(gamma_, static_cast<double>(passed));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : Schedule(optimizer), gamma_(gamma) {
  if (!(gamma >= 0))
    throw Error(ErrorKind::call, "ExponentialLR: expected a gamma of at least 0, got " + std::to_string(gamma));
  restart();
}
double ExponentialLR::rate(std::int64_t step, double initial) const {
  return initial * std::pow(gamma_, static_cast<double>(step));
}

LinearLR::LinearLR(Optimizer& optimizer, const LinearLROptions& options) : Schedule(optimizer), options_(options) {
  if (!(options.start_factor > 0 && options.start_factor <= 1) || !(options.end_factor >= 0 && options.end_factor <= 1))
    throw Error(ErrorKind::call, "LinearLR: expected factors from 0 to 1, the first above 0, got " +
                                     std::to_string(options.start_factor) + " and " +
                                     std::to_string(options.end_factor));
  if (options.total_iters < 1) throw Error(ErrorKind::call, "LinearLR: expected total_iters of at least 1");
  restart();
}
double LinearLR::rate(std::int64_t step, double initial) const {
  double done = static_cast<double>(std::min(step, options_.total_iters)) / static_cast<double>(options_.total_iters);
  return initial * (options_.start_factor + (options_.end_factor - options_.start_factor) * done);
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, std::int64_t t_max, double eta_min)
    : Schedule(optimizer), t_max_(t_max), eta_min_(eta_min) {
  if (t_max < 1)
    throw Error(ErrorKind::call, "CosineAnnealingLR: expected t_max of at least 1, got " + std::to_string(t_max));
  restart();
}
double CosineAnnealingLR::rate(std::int64_t step, double initial) const {
  double angle = std::numbers::pi * static_cast<double>(step) / static_cast<double>(t_max_);
  return eta_min_ + (initial - eta_min_) * (1 + std::cos(angle)) / 2;
}

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleLROptions& options)
    : Schedule(optimizer), options_(options) {
  if (options.total_steps < 1 || options.max_lr <= 0)
    throw Error(ErrorKind::call, "OneCycleLR: expected max_lr and total_steps above 0, got " +
                                     std::to_string(options.max_lr) + " and " + std::to_string(options.total_steps));
  if (!(options.pct_start >= 0 && options.pct_start <= 1))
    throw Error(ErrorKind::call,
                "OneCycleLR: expected pct_start from 0 to 1, got " + std::to_string(options.pct_start));
  if (options.cycle_momentum && !optimizer.has("momentum") && !optimizer.has("beta1"))
    throw Error(ErrorKind::call, "OneCycleLR: this optimizer has no momentum; set cycle_momentum = false");
  restart();
}

// From low to high in the first phase, back to low in the middle one of three, and on to last.
double OneCycleLR::between(std::int64_t step, double low, double high, double last) const {
  if (step >= options_.total_steps)
    throw Error(ErrorKind::call, "OneCycleLR: step " + std::to_string(step) + " of a schedule of " +
                                     std::to_string(options_.total_steps) + " steps");
  double total = static_cast<double>(options_.total_steps), at = static_cast<double>(step);
  double rise = options_.pct_start * total - 1, begin = 0;
  struct Phase {
    double end, from, to;
  };
  std::vector<Phase> phases{{rise, low, high}};
  if (options_.three_phase) phases.push_back({2 * options_.pct_start * total - 2, high, low});
  phases.push_back({total - 1, options_.three_phase ? low : high, last});
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Phase& phase = phases[i];
    if (at > phase.end && i + 1 < phases.size()) {
      begin = phase.end;
      continue;
    }
    double done = (at - begin) / (phase.end - begin);
    if (options_.linear) return phase.from + (phase.to - phase.from) * done;
    return phase.to + (phase.from - phase.to) / 2 * (1 + std::cos(std::numbers::pi * done));
  }
  return last;
}

double OneCycleLR::rate(std::int64_t step, double) const {
  double initial = options_.max_lr / options_.div_factor;
  return between(step, initial, options_.max_lr, initial / options_.final_div_factor);
}
void OneCycleLR::set_others(std::int64_t step) {
  if (!options_.cycle_momentum) return;
  double value = between(step, options_.max_momentum, options_.base_momentum, options_.max_momentum);
  const char* name = optimizer().has("momentum") ? "momentum" : "beta1";
  for (std::size_t g = 0; g < optimizer().groups(); ++g) optimizer().set(g, name, value);
}

SequentialLR::SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<Schedule>> schedules,
                           std::vector<std::int64_t> milestones)
    : Schedule(optimizer), schedules_(std::move(schedules)), milestones_(std::move(milestones)) {
  if (schedules_.empty() || schedules_.size() != milestones_.size() + 1)
    throw Error(ErrorKind::call, "SequentialLR: expected one milestone between each two schedules, got " +
                                     std::to_string(schedules_.size()) + " schedules and " +
                                     std::to_string(milestones_.size()) + " milestones");
  for (const auto& schedule : schedules_)
    if (!schedule || &schedule->optimizer() != &optimizer)
      throw Error(ErrorKind::call, "SequentialLR: expected schedules over its own optimizer");
  if (!std::is_sorted(milestones_.begin(), milestones_.end()))
    throw Error(ErrorKind::call, "SequentialLR: expected milestones in rising order");
  restart();
}
std::pair<std::size_t, std::int64_t> SequentialLR::place(std::int64_t step) const {
  auto next = std::upper_bound(milestones_.begin(), milestones_.end(), step);
  std::int64_t begin = next == milestones_.begin() ? 0 : *(next - 1);
  return {static_cast<std::size_t>(next - milestones_.begin()), step - begin};
}
double SequentialLR::rate(std::int64_t step, double initial) const {
  auto [which, at] = place(step);
  return schedules_[which]->rate(at, initial);
}
void SequentialLR::set_others(std::int64_t step) {
  auto [which, at] = place(step);
  schedules_[which]->set_others(at);
}

}  // namespace tenon::TENON_INLINEv0::optim

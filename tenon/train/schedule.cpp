#include <numbers>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/clamp.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/rounding.h"
#include "tenon/ops/trigonometric.h"
#include "tenon/ops/where.h"
#include "tenon/train/optimizer.h"
#include "tenon/train/settings.h"

namespace tenon::train {
namespace {

/// From `start` at 0 to `end` at 1 along half a cosine.
Tensor annealed(const Tensor& start, const Tensor& end, const Tensor& at) {
  return end + (start - end) * ((Tensor(cos(at * std::numbers::pi)) + 1.0) * 0.5);
}

Tensor like(const Tensor& t, double value) { return t * 0.0 + value; }

Schedule cosine(Settings& s, double length) {
  double t_max = s.positive("T_max", length), eta_min = s.positive("eta_min", 0);
  require(t_max > 0, "schedule cosine: T_max: expected more than 0");
  return [=](const Tensor& t, double lr) { return annealed(like(t, lr), like(t, eta_min), t / t_max); };
}

Schedule linear(Settings& s, double length) {
  double start = s.positive("start_factor", 1), end = s.positive("end_factor", 0);
  double total = s.positive("total_iters", length);
  require(total > 0, "schedule linear: total_iters: expected more than 0");
  return
      [=](const Tensor& t, double lr) { return (Tensor(clamp_max(t, total)) * ((end - start) / total) + start) * lr; };
}

Schedule by_steps(Settings& s) {
  double size = s.positive("step_size", 0), gamma = s.positive("gamma", 0.1);
  require(size > 0,
          "schedule step: give step_size=N, after how many updates the rate falls (or epochs, with per=epoch)");
  return [=](const Tensor& t, double lr) { return Tensor(pow_base(gamma, floor(t / size))) * lr; };
}

Schedule by_milestones(Settings& s) {
  std::vector<double> milestones = s.numbers("milestones", {});
  double gamma = s.positive("gamma", 0.1);
  require(!milestones.empty(), "schedule multistep: give milestones=(N,N,...)");
  return [=](const Tensor& t, double lr) {
    Tensor factor = like(t, lr);
    for (double at : milestones) factor = where(t >= at, factor * gamma, factor);
    return factor;
  };
}

Schedule exponential(Settings& s) {
  double gamma = s.positive("gamma", 0);
  require(gamma > 0, "schedule exponential: give gamma=X, the factor of every update (or epoch, with per=epoch)");
  return [=](const Tensor& t, double lr) { return Tensor(pow_base(gamma, t)) * lr; };
}

Schedule one_cycle(Settings& s, double length) {
  double total = s.positive("total_steps", length), rising = s.positive("pct_start", 0.3);
  double div = s.positive("div_factor", 25), final_div = s.positive("final_div_factor", 1e4);
  require(total > 1 && rising < 1 && div > 0 && final_div > 0,
          "schedule onecycle: expected total_steps above 1, pct_start below 1 and factors above 0");
  return [=](const Tensor& t, double lr) {
    double first = lr / div, peak = rising * total - 1;
    Tensor up = annealed(like(t, first), like(t, lr), t / (peak > 0 ? peak : 1));
    Tensor down = annealed(like(t, lr), like(t, first / final_div), (t - peak) / (total - 1 - peak));
    return Tensor(where(t <= peak, up, down));
  };
}

}  // namespace

Schedule schedule_named(const std::string& text, const ScheduleLengths& lengths) {
  std::string plain = text;
  bool by_epoch = false;  // the one argument that is a word
  if (size_t at = plain.find(",per="); at != plain.npos) {
    size_t end = std::min(plain.find(',', at + 1), plain.size());
    std::string unit = plain.substr(at + 5, end - at - 5);
    require(unit == "epoch" || unit == "step", "schedule: per: expected epoch or step, got ", quoted(unit));
    by_epoch = unit == "epoch";
    plain.erase(at, end - at);
  }
  Settings s("schedule", plain);
  auto warmup = static_cast<double>(s.count("warmup", 0));
  require(warmup >= 0, "schedule ", s.name(), ": warmup: expected 0 or more, got ", warmup);
  auto per_epoch = static_cast<double>(std::max<int64_t>(lengths.steps_per_epoch, 1));
  double length = static_cast<double>(lengths.steps) - warmup;
  if (by_epoch) length = length / per_epoch;
  length = std::max(length, 1.0);
  Schedule then;
  if (s.name() == "constant") then = [](const Tensor& t, double lr) { return like(t, lr); };
  else if (s.name() == "cosine") then = cosine(s, length);
  else if (s.name() == "linear") then = linear(s, length);
  else if (s.name() == "step") then = by_steps(s);
  else if (s.name() == "multistep") then = by_milestones(s);
  else if (s.name() == "exponential") then = exponential(s);
  else if (s.name() == "onecycle") then = one_cycle(s, length);
  else s.unknown_name("constant, cosine, linear, step, multistep, exponential or onecycle");
  s.done();
  return [=](const Tensor& step, double lr) -> Tensor {
    Tensor t = warmup > 0 ? Tensor(clamp_min(step - warmup, 0.0)) : step;
    if (by_epoch) t = floor(t / per_epoch);
    Tensor rate = then(t, lr);
    return warmup > 0 ? Tensor(where(step < like(step, warmup), (step + 1.0) * (lr / warmup), rate)) : rate;
  };
}

}  // namespace tenon::train

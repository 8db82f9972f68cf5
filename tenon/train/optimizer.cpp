#include "tenon/train/optimizer.h"

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/powers.h"
#include "tenon/ops/where.h"
#include "tenon/train/settings.h"

namespace tenon::train {
namespace {

Tensor direction(const Trained& p, bool maximize) { return maximize ? -p.gradient : p.gradient; }

/// The gradient with the decay of weights in it.
Tensor decayed(const Trained& p, bool maximize, double weight_decay) {
  Tensor g = direction(p, maximize);
  return weight_decay == 0 ? g : g + p.value * weight_decay;
}

Tensor with_square(const Tensor& average, const Tensor& g, double keep) {
  return addcmul(average * keep, g, g, kw("value", 1 - keep));
}

}  // namespace

Optimizer sgd(const SgdOptions& o) {
  require(!o.nesterov || (o.momentum > 0 && o.dampening == 0),
          "optimizer sgd: nesterov takes a momentum and no dampening, got momentum ", o.momentum, " and dampening ",
          o.dampening);
  Optimizer out{.name = "sgd", .lr = o.lr, .weight_decay = o.weight_decay, .slots = {}, .update = {}};
  if (o.momentum != 0) out.slots = {{"momentum_buffer"}};
  out.update = [o](std::span<Trained> group, const UpdateContext& c) {
    // The first update takes the gradient as it is; the buffer is zeros then.
    Tensor fresh;
    if (o.momentum != 0 && o.dampening != 0) fresh = where(eq(c.step, 1.0), 1.0 + c.lr * 0.0, 1 - o.dampening);
    for (Trained& p : group) {
      Tensor g = decayed(p, o.maximize, c.weight_decay);
      if (o.momentum != 0) {
        p.slots[0] = p.slots[0] * o.momentum + (fresh ? g * fresh : g);
        g = o.nesterov ? g + p.slots[0] * o.momentum : p.slots[0];
      }
      p.value = p.value - g * c.lr;
    }
  };
  return out;
}

Optimizer adam(const AdamOptions& o) {
  Optimizer out{.name = "adam", .lr = o.lr, .weight_decay = o.weight_decay, .slots = {}, .update = {}};
  out.slots = {{"exp_avg"}, {"exp_avg_sq"}};
  if (o.amsgrad) out.slots.push_back({"max_exp_avg_sq"});
  out.update = [o](std::span<Trained> group, const UpdateContext& c) {
    Tensor step_size = c.lr / (1.0 - Tensor(pow_base(o.beta1, c.step)));
    Tensor correction = sqrt(1.0 - Tensor(pow_base(o.beta2, c.step)));
    Tensor kept = 1.0 - c.lr * c.weight_decay;
    for (Trained& p : group) {
      bool apart = o.decoupled_weight_decay && c.weight_decay != 0;
      if (apart) p.value = p.value * kept;
      Tensor g = apart ? direction(p, o.maximize) : decayed(p, o.maximize, c.weight_decay);
      p.slots[0] = lerp(p.slots[0], g, 1 - o.beta1);
      p.slots[1] = with_square(p.slots[1], g, o.beta2);
      if (o.amsgrad) p.slots[2] = maximum(p.slots[2], p.slots[1]);
      Tensor scale = Tensor(sqrt(p.slots[o.amsgrad ? 2 : 1])) / correction + o.eps;
      p.value = p.value - p.slots[0] * step_size / scale;
    }
  };
  return out;
}

Optimizer adamw(AdamOptions o) {
  o.decoupled_weight_decay = true;
  Optimizer out = adam(o);
  out.name = "adamw";
  return out;
}

Optimizer rmsprop(const RmspropOptions& o) {
  Optimizer out{.name = "rmsprop", .lr = o.lr, .weight_decay = o.weight_decay, .slots = {}, .update = {}};
  out.slots = {{"square_avg"}};
  size_t momentum = o.momentum > 0 ? out.slots.size() : 0;
  if (o.momentum > 0) out.slots.push_back({"momentum_buffer"});
  size_t average = o.centered ? out.slots.size() : 0;
  if (o.centered) out.slots.push_back({"grad_avg"});
  out.update = [o, momentum, average](std::span<Trained> group, const UpdateContext& c) {
    for (Trained& p : group) {
      Tensor g = decayed(p, o.maximize, c.weight_decay);
      p.slots[0] = with_square(p.slots[0], g, o.alpha);
      Tensor variance = p.slots[0];
      if (average) {
        p.slots[average] = lerp(p.slots[average], g, 1 - o.alpha);
        variance = addcmul(variance, p.slots[average], p.slots[average], kw("value", -1.0));
      }
      Tensor scale = Tensor(sqrt(variance)) + o.eps;
      if (!momentum) {
        p.value = p.value - g * c.lr / scale;
        continue;
      }
      p.slots[momentum] = p.slots[momentum] * o.momentum + g / scale;
      p.value = p.value - p.slots[momentum] * c.lr;
    }
  };
  return out;
}

Optimizer adagrad(const AdagradOptions& o) {
  Optimizer out{.name = "adagrad", .lr = o.lr, .weight_decay = o.weight_decay, .slots = {}, .update = {}};
  out.slots = {{"sum", o.initial_accumulator_value}};
  out.update = [o](std::span<Trained> group, const UpdateContext& c) {
    Tensor lr = c.lr / (1.0 + (c.step - 1.0) * o.lr_decay);
    for (Trained& p : group) {
      Tensor g = decayed(p, o.maximize, c.weight_decay);
      p.slots[0] = addcmul(p.slots[0], g, g);
      p.value = p.value - g * lr / (Tensor(sqrt(p.slots[0])) + o.eps);
    }
  };
  return out;
}

namespace {

AdamOptions adam_options(Settings& s, double weight_decay) {
  AdamOptions o;
  o.lr = s.positive("lr", o.lr);
  std::vector<double> betas = s.numbers("betas", {o.beta1, o.beta2});
  require(betas.size() == 2, "optimizer ", s.name(), ": betas: expected two numbers, got ", betas.size());
  o.beta1 = s.positive("beta1", betas[0]);
  o.beta2 = s.positive("beta2", betas[1]);
  for (double beta : {o.beta1, o.beta2})
    require(beta >= 0 && beta < 1, "optimizer ", s.name(), ": betas: expected numbers from 0 to below 1, got ", beta);
  o.eps = s.positive("eps", o.eps);
  o.weight_decay = s.positive("weight_decay", weight_decay);
  o.amsgrad = s.flag("amsgrad", false);
  o.maximize = s.flag("maximize", false);
  return o;
}

}  // namespace

Optimizer optimizer_named(const std::string& text) {
  Settings s("optimizer", text);
  Optimizer out;
  if (s.name() == "sgd") {
    SgdOptions o;
    o.lr = s.positive("lr", o.lr);
    o.momentum = s.positive("momentum", o.momentum);
    o.dampening = s.number("dampening", o.dampening);
    o.weight_decay = s.positive("weight_decay", o.weight_decay);
    o.nesterov = s.flag("nesterov", o.nesterov);
    o.maximize = s.flag("maximize", o.maximize);
    out = sgd(o);
  } else if (s.name() == "adam") {
    AdamOptions o = adam_options(s, 0);
    o.decoupled_weight_decay = s.flag("decoupled_weight_decay", false);
    out = adam(o);
  } else if (s.name() == "adamw") {
    out = adamw(adam_options(s, 1e-2));
  } else if (s.name() == "rmsprop") {
    RmspropOptions o;
    o.lr = s.positive("lr", o.lr);
    o.alpha = s.positive("alpha", o.alpha);
    o.eps = s.positive("eps", o.eps);
    o.weight_decay = s.positive("weight_decay", o.weight_decay);
    o.momentum = s.positive("momentum", o.momentum);
    o.centered = s.flag("centered", o.centered);
    o.maximize = s.flag("maximize", o.maximize);
    out = rmsprop(o);
  } else if (s.name() == "adagrad") {
    AdagradOptions o;
    o.lr = s.positive("lr", o.lr);
    o.lr_decay = s.positive("lr_decay", o.lr_decay);
    o.weight_decay = s.positive("weight_decay", o.weight_decay);
    o.initial_accumulator_value = s.positive("initial_accumulator_value", o.initial_accumulator_value);
    o.eps = s.positive("eps", o.eps);
    o.maximize = s.flag("maximize", o.maximize);
    out = adagrad(o);
  } else {
    s.unknown_name("sgd, adam, adamw, rmsprop or adagrad");
  }
  s.done();
  return out;
}

}  // namespace tenon::train

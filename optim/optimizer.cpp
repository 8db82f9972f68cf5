#include <tenon/arithmetic.h>
#include <tenon/autograd.h>
#include <tenon/optim/optimizer.h>
#include <tenon/value.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace tenon::TENON_INLINE v0::optim {

Optimizer::Optimizer(Hyperparameters usual) : usual_(std::move(usual)) {
  usual_.emplace("initial_lr", std::nan(""));  // schedules remember it here
}
Optimizer::~Optimizer() = default;

namespace {
// Numbers that no rule of an update has a meaning for; those that are none were not set yet.
void require_number(const std::string& name, double value) {
  if (name == "initial_lr" || name == "dampening") return;
  if (!(value >= 0))
    throw Error(ErrorKind::call,
                "an optimizer: expected a number of at least 0 as '" + name + "', got " + std::to_string(value));
}
}  // namespace

void Optimizer::add_group(ParameterGroup group) {
  if (group.parameters.empty()) throw Error(ErrorKind::call, "an optimizer: expected parameters, got an empty list");
  Group made{std::move(group.parameters), usual_, {}};
  for (const auto& [name, value] : group.options) {
    if (!usual_.contains(name)) throw Error(ErrorKind::call, "an optimizer: this one has no option '" + name + "'");
    made.options[name] = value;
  }
  for (const auto& [name, value] : made.options) require_number(name, value);
  for (const Tensor& parameter : made.parameters)
    if (!parameter || !parameter.is_leaf())
      throw Error(ErrorKind::call, "an optimizer: expected leaves as parameters, got the result of a call or none");
  std::set<const void*> seen;
  for (const Group& other : groups_)
    for (const Tensor& parameter : other.parameters) seen.insert(parameter.raw_data());
  for (const Tensor& parameter : made.parameters) {
    if (parameter.dtype() < f16 || parameter.dtype() > f64)
      throw Error(ErrorKind::call,
                  "an optimizer: expected floating point parameters, got " + describe(Value(parameter)));
    if (parameter.numel() > 0 && !seen.insert(parameter.raw_data()).second)
      throw Error(ErrorKind::call, "an optimizer: a parameter of " + describe(Value(parameter)) + " is given twice");
  }
  made.states.resize(made.parameters.size());
  groups_.push_back(std::move(made));
}

void Optimizer::step() {
  NoGradGuard off;
  for (Group& group : groups_)
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      const Tensor& parameter = group.parameters[i];
      Tensor grad = parameter.grad();
      if (!grad) continue;
      auto maximize = group.options.find("maximize");
      if (maximize != group.options.end() && maximize->second != 0) grad = -grad;
      update(parameter, grad, group.options, group.states[i]);
    }
}

void Optimizer::zero_grad() {
  for (Group& group : groups_)
    for (const Tensor& parameter : group.parameters) parameter.set_grad({});
}

std::size_t Optimizer::groups() const { return groups_.size(); }
bool Optimizer::has(const std::string& name) const { return usual_.contains(name); }

double Optimizer::get(std::size_t group, const std::string& name) const {
  if (group >= groups_.size() || !groups_[group].options.contains(name))
    throw Error(ErrorKind::call, "an optimizer: there is no option '" + name + "' of a group " + std::to_string(group));
  return groups_[group].options.at(name);
}
void Optimizer::set(std::size_t group, const std::string& name, double value) {
  get(group, name);
  require_number(name, value);
  groups_[group].options[name] = value;
}

std::map<std::string, Tensor> Optimizer::state_dict() const {
  std::map<std::string, Tensor> out;
  std::size_t number = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (const auto& [name, value] : groups_[g].options)
      out.emplace("group." + std::to_string(g) + "." + name, scalar(value));
    for (const State& state : groups_[g].states) {
      for (const auto& [name, tensor] : state) out.emplace("state." + std::to_string(number) + "." + name, tensor);
      ++number;
    }
  }
  return out;
}

void Optimizer::load_state_dict(const std::map<std::string, Tensor>& state) {
  std::vector<Group> made = groups_;
  std::vector<std::pair<std::size_t, std::size_t>> places;  // of the parameters by number
  for (std::size_t g = 0; g < made.size(); ++g) {
    for (std::size_t i = 0; i < made[g].parameters.size(); ++i) places.emplace_back(g, i);
    for (State& own : made[g].states) own.clear();
  }
  for (std::size_t g = 0; g < made.size(); ++g)
    for (const auto& [what, value] : made[g].options)
      if (std::string name = "group." + std::to_string(g) + "." + what; !state.contains(name))
        throw Error(ErrorKind::call,
                    "load_state_dict: '" + name + "' is missing; give what state_dict() of such an optimizer gave");
  for (const auto& [name, tensor] : state) {
    std::size_t first = name.find('.'), second = name.find('.', first + 1);
    std::string kind = name.substr(0, first), digits, what;
    if (second != name.npos) digits = name.substr(first + 1, second - first - 1), what = name.substr(second + 1);
    bool numbered = !digits.empty() && digits.size() < 10 && digits.find_first_not_of("0123456789") == digits.npos;
    std::size_t number = numbered ? std::stoul(digits) : 0;
    bool known = numbered && tensor &&
                 ((kind == "group" && number < made.size() && made[number].options.contains(what)) ||
                  (kind == "state" && number < places.size()));
    if (!known) throw Error(ErrorKind::call, "load_state_dict: this optimizer has nothing called '" + name + "'");
    if (kind == "state") {
      const Tensor& parameter = made[places[number].first].parameters[places[number].second];
      if (tensor.numel() != 1 &&
          !std::equal(tensor.sizes().begin(), tensor.sizes().end(), parameter.sizes().begin(), parameter.sizes().end()))
        throw Error(ErrorKind::call, "load_state_dict: '" + name + "': expected the sizes of the parameter, " +
                                         describe(Value(parameter)) + ", got " + describe(Value(tensor)));
    }
    if (kind == "group") made[number].options[what] = tensor.item<double>();
    else made[places[number].first].states[places[number].second][what] = tensor.clone();
  }
  groups_ = std::move(made);
}

namespace {

// What the state keeps, made when it is first needed.
Tensor& kept(std::map<std::string, Tensor>& state, const char* name, const Tensor& like, double value = 0) {
  Tensor& tensor = state[name];
  if (!tensor) tensor = full_like(like, value);
  return tensor;
}
double counted(std::map<std::string, Tensor>& state) {
  Tensor& step = state["step"];
  if (!step) step = zeros({}, f64);
  step += 1;
  return step.item<double>();
}
template <class Optimizer>
void add_all(Optimizer& optimizer, std::vector<ParameterGroup> groups) {
  if (groups.empty()) throw Error(ErrorKind::call, "an optimizer: expected groups of parameters, got an empty list");
  for (ParameterGroup& group : groups) optimizer.add_group(std::move(group));
}
Hyperparameters adam_numbers(double lr, double beta1, double beta2, double eps, double weight_decay, bool amsgrad,
                             bool maximize) {
  for (double beta : {beta1, beta2})
    if (!(beta >= 0 && beta < 1))
      throw Error(ErrorKind::call, "Adam: expected betas from 0 to below 1, got " + std::to_string(beta));
  return {{"lr", lr},
          {"beta1", beta1},
          {"beta2", beta2},
          {"eps", eps},
          {"weight_decay", weight_decay},
          {"amsgrad", amsgrad ? 1.0 : 0.0},
          {"maximize", maximize ? 1.0 : 0.0}};
}

}  // namespace

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& options)
    : SGD(std::vector<ParameterGroup>{{std::move(parameters)}}, options) {}
SGD::SGD(std::vector<ParameterGroup> groups, const SGDOptions& o)
    : Optimizer({{"lr", o.lr},
                 {"momentum", o.momentum},
                 {"dampening", o.dampening},
                 {"weight_decay", o.weight_decay},
                 {"nesterov", o.nesterov ? 1.0 : 0.0},
                 {"maximize", o.maximize ? 1.0 : 0.0}}) {
  if (o.nesterov && (o.momentum <= 0 || o.dampening != 0))
    throw Error(ErrorKind::call, "SGD: nesterov needs a momentum and no dampening");
  add_all(*this, std::move(groups));
}

void SGD::update(const Tensor& parameter, const Tensor& grad, const Hyperparameters& o, State& state) {
  Tensor d = o.at("weight_decay") != 0 ? grad.add(parameter, o.at("weight_decay")) : grad;
  if (double momentum = o.at("momentum"); momentum != 0) {
    Tensor& buffer = state["momentum_buffer"];
    if (!buffer) buffer = d.clone();
    else buffer.mul_(momentum).add_(d, 1 - o.at("dampening"));
    d = o.at("nesterov") != 0 ? d.add(buffer, momentum) : buffer;
  }
  parameter.add_(d, -o.at("lr"));
}

Adam::Adam(const AdamOptions& o, bool decoupled)
    : Optimizer(adam_numbers(o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, o.amsgrad, o.maximize)),
      decoupled_(decoupled) {}
Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options)
    : Adam(std::vector<ParameterGroup>{{std::move(parameters)}}, options) {}
Adam::Adam(std::vector<ParameterGroup> groups, const AdamOptions& options) : Adam(options, false) {
  add_all(*this, std::move(groups));
}

void Adam::update(const Tensor& parameter, const Tensor& grad, const Hyperparameters& o, State& state) {
  double lr = o.at("lr"), beta1 = o.at("beta1"), beta2 = o.at("beta2"), decay = o.at("weight_decay");
  double step = counted(state);
  Tensor d = grad;
  if (decay != 0 && decoupled_) parameter.mul_(1 - lr * decay);
  else if (decay != 0) d = grad.add(parameter, decay);
  Tensor& average = kept(state, "exp_avg", parameter);
  Tensor& square = kept(state, "exp_avg_sq", parameter);
  average.lerp_(d, 1 - beta1);
  square.mul_(beta2).addcmul_(d, d, 1 - beta2);
  Tensor largest = square;
  if (o.at("amsgrad") != 0) {
    Tensor& most = kept(state, "max_exp_avg_sq", parameter);
    most.copy_(maximum(most, square));
    largest = most;
  }
  double correction1 = 1 - std::pow(beta1, step), correction2 = std::sqrt(1 - std::pow(beta2, step));
  parameter.addcdiv_(average, (largest.sqrt() / correction2).add_(o.at("eps")), -lr / correction1);
}

AdamW::AdamW(std::vector<Tensor> parameters, const AdamWOptions& options)
    : AdamW(std::vector<ParameterGroup>{{std::move(parameters)}}, options) {}
AdamW::AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& o)
    : Adam({.lr = o.lr,
            .beta1 = o.beta1,
            .beta2 = o.beta2,
            .eps = o.eps,
            .weight_decay = o.weight_decay,
            .amsgrad = o.amsgrad,
            .maximize = o.maximize},
           true) {
  add_all(*this, std::move(groups));
}

RMSprop::RMSprop(std::vector<Tensor> parameters, const RMSpropOptions& options)
    : RMSprop(std::vector<ParameterGroup>{{std::move(parameters)}}, options) {}
RMSprop::RMSprop(std::vector<ParameterGroup> groups, const RMSpropOptions& o)
    : Optimizer({{"lr", o.lr},
                 {"alpha", o.alpha},
                 {"eps", o.eps},
                 {"weight_decay", o.weight_decay},
                 {"momentum", o.momentum},
                 {"centered", o.centered ? 1.0 : 0.0},
                 {"maximize", o.maximize ? 1.0 : 0.0}}) {
  add_all(*this, std::move(groups));
}

void RMSprop::update(const Tensor& parameter, const Tensor& grad, const Hyperparameters& o, State& state) {
  Tensor d = o.at("weight_decay") != 0 ? grad.add(parameter, o.at("weight_decay")) : grad;
  double alpha = o.at("alpha");
  counted(state);
  Tensor& square = kept(state, "square_avg", parameter);
  square.mul_(alpha).addcmul_(d, d, 1 - alpha);
  Tensor root;
  if (o.at("centered") != 0) {
    Tensor& average = kept(state, "grad_avg", parameter);
    average.lerp_(d, 1 - alpha);
    root = square.addcmul(average, average, -1).sqrt();
  } else root = square.sqrt();
  root.add_(o.at("eps"));
  if (o.at("momentum") > 0) {
    Tensor& buffer = kept(state, "momentum_buffer", parameter);
    buffer.mul_(o.at("momentum")).addcdiv_(d, root);
    parameter.add_(buffer, -o.at("lr"));
  } else parameter.addcdiv_(d, root, -o.at("lr"));
}

Adagrad::Adagrad(std::vector<Tensor> parameters, const AdagradOptions& options)
    : Adagrad(std::vector<ParameterGroup>{{std::move(parameters)}}, options) {}
Adagrad::Adagrad(std::vector<ParameterGroup> groups, const AdagradOptions& o)
    : Optimizer({{"lr", o.lr},
                 {"lr_decay", o.lr_decay},
                 {"weight_decay", o.weight_decay},
                 {"initial_accumulator_value", o.initial_accumulator_value},
                 {"eps", o.eps},
                 {"maximize", o.maximize ? 1.0 : 0.0}}) {
  add_all(*this, std::move(groups));
}

void Adagrad::update(const Tensor& parameter, const Tensor& grad, const Hyperparameters& o, State& state) {
  double step = counted(state);
  Tensor d = o.at("weight_decay") != 0 ? grad.add(parameter, o.at("weight_decay")) : grad;
  Tensor& sum = kept(state, "sum", parameter, o.at("initial_accumulator_value"));
  sum.addcmul_(d, d, 1);
  parameter.addcdiv_(d, sum.sqrt().add_(o.at("eps")), -o.at("lr") / (1 + (step - 1) * o.at("lr_decay")));
}

}  // namespace tenon::TENON_INLINEv0::optim

// Optimizers: SGD, Adam, AdamW, RMSprop, Adagrad.
#pragma once
#include <tenon/tensor.h>

#include <map>
#include <string>
#include <vector>

namespace tenon::TENON_INLINE v0::optim {

/// What one step of a parameter needs: its own numbers by name ("lr", "momentum", "weight_decay", ...).
using Hyperparameters = std::map<std::string, double>;

struct ParameterGroup {
  std::vector<Tensor> parameters;
  Hyperparameters options = {};  // where they differ from those of the optimizer: {{"weight_decay", 0}}
};

/// Changes parameters in the direction of their gradients. Parameters without a gradient stay as they are.
class TENON_PUBLIC Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  void step();
  void zero_grad();
  void add_group(ParameterGroup group);
  std::size_t groups() const;
  /// A number of a group, by PyTorch's name of it. A name that the optimizer does not have is an Error.
  double get(std::size_t group, const std::string& name) const;
  void set(std::size_t group, const std::string& name, double value);
  bool has(const std::string& name) const;
  /// All that the next step depends on besides parameters and gradients: state.N.NAME for the parameter number N, and
  /// group.N.NAME. Tensors of it are the optimizer's own, not copies.
  std::map<std::string, Tensor> state_dict() const;
  void load_state_dict(const std::map<std::string, Tensor>& state);

 protected:
  using State = std::map<std::string, Tensor>;
  explicit Optimizer(Hyperparameters usual);
  /// One parameter's step, in place, where gradients are off. `state` keeps tensors from step to step.
  virtual void update(const Tensor& parameter, const Tensor& grad, const Hyperparameters& options, State& state) = 0;

 private:
  struct Group {
    std::vector<Tensor> parameters;
    Hyperparameters options;
    std::vector<State> states;
  };
  Hyperparameters usual_;
  std::vector<Group> groups_;
};

struct SGDOptions {
  double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
  bool nesterov = false, maximize = false;
};
class TENON_PUBLIC SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> parameters, const SGDOptions& options = {});
  explicit SGD(std::vector<ParameterGroup> groups, const SGDOptions& options = {});

 private:
  void update(const Tensor& parameter, const Tensor& grad, const Hyperparameters& options, State& state) override;
};

struct AdamOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool amsgrad = false, maximize = false;
};
class TENON_PUBLIC Adam : public Optimizer {
 public:
  explicit Adam(std::vector<Tensor> parameters, const AdamOptions& options = {});
  explicit Adam(std::vector<ParameterGroup> groups, const AdamOptions& options = {});

 protected:
  Adam(const AdamOptions& options, bool decoupled);  // decoupled: the decay does not pass through the moments

 private:
  void update(const Tensor& parameter, const Tensor& grad, const Hyperparameters& options, State& state) override;
  bool decoupled_ = false;
};

struct AdamWOptions {
  double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
  bool amsgrad = false, maximize = false;
};
class TENON_PUBLIC AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> parameters, const AdamWOptions& options = {});
  explicit AdamW(std::vector<ParameterGroup> groups, const AdamWOptions& options = {});
};

struct RMSpropOptions {
  double lr = 1e-2, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0;
  bool centered = false, maximize = false;
};
class TENON_PUBLIC RMSprop : public Optimizer {
 public:
  explicit RMSprop(std::vector<Tensor> parameters, const RMSpropOptions& options = {});
  explicit RMSprop(std::vector<ParameterGroup> groups, const RMSpropOptions& options = {});

 private:
  void update(const Tensor& parameter, const Tensor& grad, const Hyperparameters& options, State& state) override;
};

struct AdagradOptions {
  double lr = 1e-2, lr_decay = 0, weight_decay = 0, initial_accumulator_value = 0, eps = 1e-10;
  bool maximize = false;
};
class TENON_PUBLIC Adagrad : public Optimizer {
 public:
  explicit Adagrad(std::vector<Tensor> parameters, const AdagradOptions& options = {});
  explicit Adagrad(std::vector<ParameterGroup> groups, const AdagradOptions& options = {});

 private:
  void update(const Tensor& parameter, const Tensor& grad, const Hyperparameters& options, State& state) override;
};

}  // namespace tenon::TENON_INLINEv0::optim

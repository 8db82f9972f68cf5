// Modules made of modules.
#pragma once
#include <tenon/nn/module.h>

#include <concepts>

namespace tenon::TENON_INLINE v0::nn {

/// Modules, or functions from a tensor to a tensor, one after another; their parts are named 0, 1, ...
class TENON_PUBLIC Sequential : public Module {
 public:
  template <class... Steps>
  requires(std::invocable<Steps, const Tensor&>&&...) explicit Sequential(Steps... steps) {
    (push_back(std::move(steps)), ...);
  }
  template <std::invocable<const Tensor&> Step>
  void push_back(Step step) {
    push_back(std::to_string(steps_.size()), std::move(step));
  }
  template <std::invocable<const Tensor&> Step>
  void push_back(const std::string& name, Step step) {
    if constexpr (std::derived_from<Step, Module>) add_module(name, step);
    Function<Tensor(const Tensor&)> own(std::move(step));
    if (!own) throw Error(ErrorKind::call, "Sequential: the function of step '" + name + "' is empty");
    steps_.push_back(std::move(own));
  }
  Tensor forward(const Tensor& x) const {
    Scope scope(*this, x);
    Tensor y = x;
    for (const auto& step : steps_) y = step(y);
    return scope.result(y);
  }
  Tensor operator()(const Tensor& x) const { return forward(x); }
  std::size_t size() const { return steps_.size(); }

 private:
  std::vector<Function<Tensor(const Tensor&)>> steps_;
};

/// Modules of one type in a list.
template <std::derived_from<Module> M>
class ModuleList : public Module {
 public:
  ModuleList() = default;
  ModuleList(std::initializer_list<M> modules) {
    for (const M& module : modules) push_back(module);
  }
  void push_back(M module) {
    add_module(std::to_string(modules_.size()), module);
    modules_.push_back(std::move(module));
  }
  const M& operator[](std::size_t index) const {
    if (index >= modules_.size())
      throw Error(ErrorKind::call, "this list has " + std::to_string(modules_.size()) + " modules, and no number " +
                                       std::to_string(index));
    return modules_[index];
  }
  std::size_t size() const { return modules_.size(); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }

 private:
  std::vector<M> modules_;
};

/// Modules of one type by name, in the order they were added.
template <std::derived_from<Module> M>
class ModuleDict : public Module {
 public:
  ModuleDict() = default;
  ModuleDict(std::initializer_list<std::pair<std::string, M>> modules) {
    for (const auto& [name, module] : modules) insert(name, module);
  }
  void insert(const std::string& name, M module) {
    add_module(name, module);
    modules_.emplace_back(name, std::move(module));
  }
  const M& operator[](const std::string& name) const {
    for (const auto& [own, module] : modules_)
      if (own == name) return module;
    throw Error(ErrorKind::call, "there is no module '" + name + "' in this dictionary");
  }
  std::size_t size() const { return modules_.size(); }
  auto begin() const { return modules_.begin(); }
  auto end() const { return modules_.end(); }

 private:
  std::vector<std::pair<std::string, M>> modules_;
};

}  // namespace tenon::TENON_INLINEv0::nn

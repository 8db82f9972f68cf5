// Modules written in C++: parameters, buffers and parts under names, as PyTorch's nn.Module.
#pragma once
#include <tenon/autograd.h>
#include <tenon/export.h>
#include <tenon/function.h>
#include <tenon/operators.h>
#include <tenon/value.h>

#include <concepts>
#include <map>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

namespace tenon::TENON_INLINE v0::nn {

/// A tensor of a module. Copies are the same one, also after it has been replaced (converted, loaded).
class Parameter {
 public:
  Parameter() = default;
  explicit Parameter(Tensor tensor) : tensor_(std::make_shared<Tensor>(std::move(tensor))) {}
  operator const Tensor&() const { return get(); }  // NOLINT: a parameter is a tensor
  const Tensor& operator*() const { return get(); }
  const Tensor* operator->() const { return &get(); }
  bool defined() const { return tensor_ && tensor_->defined(); }
  void set(Tensor tensor) {
    if (!tensor_)
      throw Error(ErrorKind::call, "this parameter belongs to no module; set() replaces the tensor of one that does");
    *tensor_ = std::move(tensor);
  }

 private:
  const Tensor& get() const {
    static const Tensor none;
    return tensor_ ? *tensor_ : none;
  }
  std::shared_ptr<Tensor> tensor_;  // shared: by the module's body and by what computes with it
};

class Module;
using Forward = Function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>;
ExportedProgram TENON_PUBLIC export_module(const Module& model, const char* type, const Forward& forward,
                                           const std::vector<Tensor>& inputs, ExportOptions options);

/// The base of layers and models. A module is a handle: copies share parameters, parts and mode. A model is a struct:
///
///   struct Net : nn::Module {
///     nn::Linear hidden = add("hidden", nn::Linear(64, 32)), out = add("out", nn::Linear(32, 10));
///     Tensor forward(const Tensor& x) const { return out(relu(hidden(x))); }
///   };
///
/// Threads may call one module at once as long as none changes its parameters.
class TENON_PUBLIC Module {
 public:
  Module();
  virtual ~Module();
  Module(const Module&) = default;
  Module& operator=(const Module&) = default;

  NamedTensors named_parameters() const;  // dotted names, in the order they were added; each tensor once
  NamedTensors named_buffers() const;
  NamedTensors named_constants() const;
  std::vector<Tensor> parameters() const;
  std::vector<std::string> named_modules() const;
  /// Parameters and persistent buffers by name: handles, not copies.
  std::map<std::string, Tensor> state_dict() const;
  /// Copies values into parameters and buffers. Names, sizes and dtypes must agree; a missing or an unknown name is an
  /// Error unless strict is false.
  void load_state_dict(const std::map<std::string, Tensor>& state, bool strict = true) const;
  void zero_grad() const;
  void train(bool on = true) const;
  void eval() const { train(false); }
  bool is_training() const;
  void requires_grad_(bool requires_grad = true) const;
  void to(DType dtype) const;  // floating point parameters and buffers
  /// Calls f with the name and each module within, this one first.
  void apply(const Function<void(const std::string& name, const Module& module)>& f) const;

 protected:
  Parameter add_parameter(const std::string& name, Tensor tensor);  // none is kept as an absent one
  Parameter add_buffer(const std::string& name, Tensor tensor, bool persistent = true);
  Tensor add_constant(const std::string& name, Tensor tensor);  // no state: a name for it in programs
  template <class M>
  M add(const std::string& name, M module) {
    add_module(name, module);
    return module;
  }
  void add_module(const std::string& name, const Module& module);

 private:
  friend class Scope;
  friend ExportedProgram TENON_PUBLIC export_module(const Module& model, const char* type, const Forward& forward,
                                                    const std::vector<Tensor>& inputs, ExportOptions options);
  struct Body;
  explicit Module(std::shared_ptr<Body> body) : body_(std::move(body)) {}
  std::shared_ptr<Body> body_;  // shared: by copies, and by the module it is a part of
};

/// The first line of a forward: while it lives, calls are this module's. Programs then name it in their module stacks,
/// which torch.export.unflatten makes modules of. Without it, calls are those of the module around it.
///
///   Tensor operator()(const Tensor& x) const {
///     nn::Scope scope(*this, x);
///     return scope.result(out(relu(hidden(x))));
///   }
///
/// The arguments and the result are for preserve_module_call_signature and may be left out where nobody asks for it.
class Scope : public ModuleScope {
 public:
  template <class M, std::convertible_to<Tensor>... Inputs>
  explicit Scope(const M& module, const Inputs&... inputs) : ModuleScope(module.Module::body_.get(), typeid(M).name()) {
    if constexpr (sizeof...(Inputs) > 0)
      if (recorded()) takes({inputs...});
  }
  Tensor result(Tensor y) const {
    if (recorded()) gives({y});
    return y;
  }
};

/// One number for all dimensions, or one for each.
struct Extents {
  Extents(std::int64_t all) : each{all} {}
  Extents(std::initializer_list<std::int64_t> sizes) : each(sizes) {}
  operator IntList() const { return each; }
  std::vector<std::int64_t> each;
};

}  // namespace tenon::TENON_INLINEv0::nn

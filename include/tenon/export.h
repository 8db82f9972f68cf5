// Programs from C++ functions: what torch.export does, for code over tenon::Tensor.
#pragma once
#include <tenon/function.h>
#include <tenon/program.h>
#include <tenon/tensor.h>

#include <cstdint>
#include <map>
#include <utility>

namespace tenon::TENON_INLINE v0 {

/// What sizes a dimension may have, both ends included.
struct Bounds {
  std::int64_t min = 0, max = INT64_MAX;
};

/// What a program allows for one dimension of an input:
/// - Dim("n", {.min = 1, .max = 64}): any size within the bounds, the same wherever n stands; 2 * n + 1 follows from
/// it.
/// - Dim::automatic(): any size that forward does not depend on; else the example's.
/// - Dim::dynamic(): likewise, but an Error where forward depends on the example's.
/// - Dim::fixed(): the example's size, as of dimensions of which nothing is said.
class TENON_PUBLIC Dim {
 public:
  enum class Kind : std::uint8_t { named, automatic, dynamic, fixed };
  explicit Dim(std::string name, Bounds bounds = {});
  static Dim automatic(Bounds bounds = {});
  static Dim dynamic(Bounds bounds = {});
  static Dim fixed(std::optional<std::int64_t> size = {});
  /// Of a named one, with a positive factor.
  Dim operator*(std::int64_t factor) const;
  Dim operator+(std::int64_t offset) const;
  Dim operator-(std::int64_t offset) const { return *this + -offset; }
  friend Dim operator*(std::int64_t factor, const Dim& dim) { return dim * factor; }
  friend Dim operator+(std::int64_t offset, const Dim& dim) { return dim + offset; }

  Kind kind() const noexcept { return kind_; }
  const std::string& name() const noexcept { return name_; }
  Bounds bounds() const noexcept { return bounds_; }  // of the name itself
  std::int64_t factor() const noexcept { return factor_; }
  std::int64_t offset() const noexcept { return offset_; }
  std::optional<std::int64_t> size() const noexcept { return size_; }

 private:
  Dim(Kind kind, Bounds bounds) noexcept : kind_(kind), bounds_(bounds) {}
  Kind kind_;
  std::string name_;
  Bounds bounds_;
  std::int64_t factor_ = 1, offset_ = 0;
  std::optional<std::int64_t> size_;
};

/// Dimensions by the name of their input: {{"x", {{0, Dim("n")}}}}. Negative ones count from the end.
using DynamicShapes = std::map<std::string, std::map<std::int64_t, Dim>>;

/// Tensors that forward uses, under their dotted names.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

struct ExportOptions {
  std::vector<std::string> input_names = {};  // of forward; args_0, ... where there are none
  DynamicShapes dynamic_shapes = {};
  NamedTensors parameters = {};
  NamedTensors buffers = {};
  std::vector<std::string> non_persistent = {};  // buffers that are no part of the state_dict
  NamedTensors constants = {};                   // that have names of their own; others are called lifted_tensor_0, ...
  // Of a model, for the module stacks of the program: the dotted names of its parts, its C++ type, and what a
  // ModuleScope speaks of. nn::export_program gives them.
  std::vector<std::string> modules = {};
  std::string type = {};
  Function<std::string(const void* module)> module_name = {};
  // Dotted names of parts whose calls keep their arguments and results: unflatten() and torch.export.unflatten give
  // modules that are called as forward was. Their scopes must say what they take and give.
  std::vector<std::string> preserve_module_call_signature = {};
};

/// Calls forward with tensors that have the inputs' dtypes and sizes and no elements, and gives the program of the
/// operators it called: views, writes and grad-mode changes as they happened. Sizes are as in the inputs, unless
/// dynamic_shapes says otherwise; then forward may be called several times, until it is known which of them are equal
/// or fixed. Parameters and buffers are the program's state; other tensors that forward meets become its constants.
/// What forward decides by C++ values is decided; a look at elements is an Error. Several results become a tuple. The
/// inputs are kept in the program as its sample.
TENON_PUBLIC ExportedProgram
export_program(const Function<std::vector<Tensor>(const std::vector<Tensor>& inputs)>& forward,
               const std::vector<Tensor>& inputs, const ExportOptions& options = {});

/// While it lives, what is called on this thread belongs to a module: programs say so in their module stacks, and
/// torch.export.unflatten makes the modules again. nn::Scope makes one.
class TENON_PUBLIC ModuleScope {
 public:
  ModuleScope(const void* module, const char* type);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;
  /// What the module was called with, and what it gives: for preserve_module_call_signature. Some may be none.
  void takes(TensorList inputs) const;
  void gives(TensorList results) const;

 protected:
  bool recorded() const noexcept { return entered_; }

 private:
  bool entered_;
};

}  // namespace tenon::TENON_INLINEv0

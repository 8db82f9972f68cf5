// A program as the modules it was exported from, to be called and replaced one by one.
#pragma once
#include <tenon/function.h>
#include <tenon/module.h>

namespace tenon::TENON_INLINE v0 {
namespace detail {
struct UnflattenedBody;
TENON_PUBLIC void retain(UnflattenedBody* body) noexcept;
TENON_PUBLIC void release(UnflattenedBody* body) noexcept;
}  // namespace detail

/// What PyTorch's torch.export.unflatten gives: modules by their dotted paths, the program itself under "". A module
/// takes and gives a flat list of values: the arguments and results of its forward where its signature was preserved at
/// export, else the tensors that it uses of others and that others use of it, in order. One that is called several
/// times is one module. Copies share what was replaced; calls of one object are not to be made at once.
class TENON_PUBLIC UnflattenedModule {
 public:
  using Forward = Function<std::vector<Value>(const std::vector<Value>& inputs)>;

  std::vector<std::string> modules() const;  // paths in order of first use, "" first
  std::string class_name(const std::string& path) const;
  std::vector<std::string> names(const std::string& path) const;  // state that it uses, dotted from the program
  bool has_signature(const std::string& path) const;              // preserved at export
  Tensor get(const std::string& name) const;                      // of the state, a copy
  void set(const std::string& name, const Tensor& value);

  /// Calls the whole program, with what was replaced in place; buffers that it updates are kept for the next call.
  Value call(const std::vector<Value>& args, const Kwargs& kwargs = {});
  Value operator()(Value a) { return call({std::move(a)}); }
  Value operator()(Value a, Value b) { return call({std::move(a), std::move(b)}); }
  /// Calls one module, the first of its calls where there are several.
  std::vector<Value> call_module(const std::string& path, const std::vector<Value>& inputs);
  /// Calls forward from now on wherever the program calls the module. It gives as many values as the module does.
  void replace(const std::string& path, Forward forward);
  void restore(const std::string& path);

 private:
  friend TENON_PUBLIC UnflattenedModule unflatten(const ExportedProgram& program);
  detail::Shared<detail::UnflattenedBody> body_;
};

/// Joint programs too: their gradients belong to the program itself, or to the modules their nodes name.
TENON_PUBLIC UnflattenedModule unflatten(const ExportedProgram& program);

}  // namespace tenon::TENON_INLINEv0

// Programs compiled ahead of time: one shared object that needs the C library alone, made without a compiler.
#pragma once
#include <tenon/module.h>

#include <cstddef>

namespace tenon::TENON_INLINE v0 {
struct CompileOptions {
  std::vector<std::string> targets = {};  // x86-64-v3, x86-64-v4; both where there is none
  bool updatable = false;    // weights can be set; else only what a call reads is kept, in the form it is read
  bool samples = true;       // keep the sample inputs
  std::string weights = {};  // f16, bf16: what products in f32 multiply with is kept rounded to that
  Log log = {};              // told which passes were run, and what could not be kept
};
/// Writes a shared library that <tenon/runtime.h> and load_compiled() call; it appears whole or not at all.
TENON_PUBLIC void compile(const ExportedProgram& program, const std::string& path, const CompileOptions& options = {});
/// The same in memory.
TENON_PUBLIC std::vector<std::byte> compile(const ExportedProgram& program, const CompileOptions& options = {});

struct CompiledModuleOptions {
  std::uint64_t seed = 0;  // of random operators
  int threads = 0;         // 0: as many as the process may use
};

/// A compiled program and its state, called as a Module is. Safe from many threads in the same way; copies share the
/// state. A compiled program is code: load only what you would also execute.
class TENON_PUBLIC CompiledModule {
 public:
  explicit CompiledModule(const std::string& path, const CompiledModuleOptions& options = {});
  explicit CompiledModule(std::vector<std::byte> bytes, const CompiledModuleOptions& options = {});

  std::vector<std::string> input_names() const;            // of the flattened arguments
  std::string target() const;                              // of the code that this machine runs
  std::vector<std::string> names() const;                  // of the state that can be read and set
  Tensor get(const std::string& name) const;               // a copy
  void set(const std::string& name, const Tensor& value);  // of the same dtype and sizes

  Value call(const std::vector<Value>& args, const Kwargs& kwargs = {}) const { return run(args, kwargs).result; }
  RunResult run(const std::vector<Value>& args, const Kwargs& kwargs = {}) const;

  Value operator()(const Kwargs& kwargs = {}) const { return call({}, kwargs); }
  template <class... Args>
  requires(sizeof...(Args) >= 1 && (std::is_convertible_v<Args, Value> && ...)) Value operator()(Args&&... args) const {
    return call({Value(std::forward<Args>(args))...});
  }

 private:
  detail::Shared<detail::CompiledModuleBody> body_;
};

/// Opens what compile() wrote.
TENON_PUBLIC CompiledModule load_compiled(const std::string& path, const CompiledModuleOptions& options = {});

}  // namespace tenon::TENON_INLINEv0

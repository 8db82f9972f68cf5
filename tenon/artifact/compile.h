// A program made ready, compiled: machine code for its stages, the library's for its anchors, tables and weights, in
// one shared object that needs no relocation and no compiler.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/session/executable.h"
#include "tenon/session/state.h"

namespace tenon::artifact {

enum class Target : uint8_t { x86_64_v3, x86_64_v4 };
std::string_view name(Target target);
std::optional<Target> target_named(std::string_view name);
/// The best that this machine runs; nothing where it runs none.
std::optional<Target> native_target();

struct CompileOptions {
  std::vector<Target> targets = {Target::x86_64_v3, Target::x86_64_v4};
  /// Weights can be set and saved by name; else only what a run reads is kept, in the form it is read.
  bool updatable = false;
  /// State that a run may change is stored. Without it, states of the program start as zeros until they are set.
  bool store_state = true;
  /// Names of the exported function's parameters, for calls by keyword.
  std::vector<std::string> parameters = {};
  /// Arguments to keep as samples, flattened as the program takes them.
  std::optional<std::vector<CallArg>> samples;
};

/// Writes a file; it appears whole or not at all. Unsupported names what cannot be compiled.
void compile_program(const Executable& executable, const State& state, const std::string& path,
                     const CompileOptions& options);
/// The same in memory.
std::vector<std::byte> compile_program(const Executable& executable, const State& state, const CompileOptions& options);

class CompiledProgram;
/// The same tables in this process, every generated kernel executed by the interpreter of Kernel IR: what machine code
/// is compared with.
std::shared_ptr<const CompiledProgram> interpret_compiled(const Executable& executable, const State& state,
                                                          const CompileOptions& options = {});

}  // namespace tenon::artifact

// A compiled program as source: C for its stages, the kernel library's own text for its anchors, tables and weights.
// One command makes an artifact of it, also with a compiler for another processor.
#pragma once
#include <string>

#include "tenon/artifact/compile.h"

namespace tenon::artifact {

struct SourceOptions {
  CompileOptions compile;
  std::string output = "model.so";  // what the command in the folder writes
};

/// Writes a folder, which must not exist or be empty; it appears whole or not at all. kernels.c begins with the
/// command.
void emit_source(const Executable& executable, const State& state, const std::string& folder,
                 const SourceOptions& options);
/// The same in a temporary folder, built by the system's C compiler (CC, or cc) into `path`.
void compile_with_c(const Executable& executable, const State& state, const std::string& path,
                    const CompileOptions& options);

}  // namespace tenon::artifact

// The executed program as an artifact's tables: every stage a generated kernel, every anchor calls of the kernel
// library, memory by segments, sizes and numbers as expressions. The tables are the plan: the runtime executes them,
// whoever provides the functions (machine code, C, or the interpreter of kernels).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tenon/compile/kernel.h"
#include "tenon/graph/convention.h"
#include "tenon/loop/program.h"
#include "tenon/package/tables.h"

namespace tenon::plan {

struct TablesOptions {
  /// Weights can be set: what is derived from them is made at run time. Else only what a run reads is kept.
  bool updatable = false;
  /// For interpreted.h: every generated kernel is the function `interpret`, and its own address the first parameter.
  bool interpreted = false;
  bool described = false;  // steps in words, too
  /// By input: state that can be written, and starts as zeros or is handed in; it is not stored. Empty: none.
  std::vector<bool> not_stored = {};
};

/// Where the contents of one of the program's buffers (state, derived) lie in the weights.
struct WeightItem {
  loop::BufferId buffer = loop::no_buffer;
  uint64_t offset = 0, bytes = 0;
};

struct Planned {
  package::Tables tables;
  std::vector<std::unique_ptr<compile::Kernel>> kernels;  // generated, equal ones once
  std::vector<std::string> called;                        // functions of kernels/ that are called, each once
  std::vector<WeightItem> weights;
  std::vector<std::string> steps;       // described: what is called, on what, and for which node
  std::vector<size_t> inputs, outputs;  // of the tables: which input and output of the program each one is
};

/// The kernel as a name in the tables, in C and in symbols of machine code.
constexpr std::string_view interpret_function = "interpret";

/// Steps in words, then the generated kernels. For a planned program that was described.
std::string to_text(const Planned& planned);

/// Unsupported names what a compiled program cannot do yet.
Planned make_tables(const loop::Program& program, const CallingConvention& convention, const TablesOptions& options);

/// What an output is called outside: output_0, grad.fc.weight, input.x.
std::string output_name(const OutputMeaning& meaning, const CallingConvention& convention);

}  // namespace tenon::plan

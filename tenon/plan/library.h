// An anchor of the executed program as calls of the kernel library (kernels/): which functions, on which buffers, with
// which numbers. The interpreter and artifacts both execute what is written here, so both run the same code.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/loop/param.h"
#include "tenon/loop/program.h"

namespace tenon::plan {

/// A buffer of the program, or a temporary of the anchor.
struct LibraryArg {
  loop::BufferId buffer = loop::no_buffer;
  size_t temporary = 0;  // where there is no buffer: which of the anchor's temporaries
  bool written = false;
};

/// One function of the library, over [0, extent) in chunks of `grain` that may run at the same time. The function is
/// handed the first element of each buffer; offsets and strides are among its parameters.
struct LibraryCall {
  std::string function;  // "gemm_f32": as kernels/ names it
  std::vector<LibraryArg> args;
  std::vector<loop::Param> params;
  SymInt extent = 1, grain = 1;
  SymInt scratch = 0;  // bytes for each thread
};

/// What sizes must satisfy; decided at once where they are numbers.
struct Condition {
  SymInt holds = 0;
  std::string message;
};

struct LibraryCalls {
  std::vector<SymInt> temporaries;  // bytes of each; alive during these calls
  std::vector<LibraryCall> calls;   // one after another
  std::vector<Condition> conditions;
};

/// How the last call of an anchor hands finished results to an epilogue: rows are numbered over all of its dimensions
/// but the columns.
struct ResultBlocks {
  bool whole_rows = false;  // a block has all columns
};
/// Nothing where it takes no epilogue.
std::optional<ResultBlocks> result_blocks(const loop::Program& program, const loop::Step& anchor);

/// Sizes or dtypes that cannot belong together are an Error.
LibraryCalls library_calls(const loop::Program& program, const loop::Step& anchor);

}  // namespace tenon::plan

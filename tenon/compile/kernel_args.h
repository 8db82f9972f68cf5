// What a generated kernel is handed, and how it is called. A plain C struct: generated C spells it again, machine code
// knows its offsets.
#pragma once
#include <cstdint>

// This is the seam to the runtime's own header: once that declares tenon_args, the struct here becomes an include.
extern "C" {
struct tenon_args {
  void* const* buffers;
  const int64_t* params;
  void* scratch;  // of this thread alone
};
}

namespace tenon::compile {

/// Works on [lo, hi) of the outermost loop. 0, or the union of the status bits of the `fault`s that held.
using KernelFunction = int (*)(const tenon_args*, int64_t lo, int64_t hi);

}  // namespace tenon::compile

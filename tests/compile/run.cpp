#include "tests/compile/run.h"

namespace tenon::compile {

int run(const Kernel& kernel, std::vector<Span> buffers, std::vector<int64_t> params, int64_t lo, int64_t hi) {
  std::vector<std::byte> scratch(kernel.scratch_bytes());
  return interpret(kernel, buffers, params, span_of(scratch), lo, hi);
}

}  // namespace tenon::compile

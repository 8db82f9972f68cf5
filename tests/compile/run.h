// Running a kernel in tests: in the interpreter, as machine code, or as both and compared.
#pragma once
#include <string>
#include <vector>

#include "tenon/compile/interpret.h"
#include "tenon/compile/kernel_args.h"
#include "tenon/compile/mapped_code.h"

namespace tenon::compile {

template <class T>
Span span_of(std::vector<T>& v) {
  return {v.data(), v.size() * sizeof(T)};
}

/// The instruction sets of this machine.
std::vector<Isa> isas();

int call(KernelFunction function, const Kernel& kernel, const std::vector<Span>& buffers,
         const std::vector<int64_t>& params, int64_t lo, int64_t hi);

/// On the best machine code there is, in the interpreter where there is none.
int run(const Kernel& kernel, const std::vector<Span>& buffers, const std::vector<int64_t>& params, int64_t lo,
        int64_t hi);

/// In the interpreter, on copies of the buffers.
struct Outcome {
  int status = 0;
  std::vector<std::vector<std::byte>> buffers;
};
Outcome interpreted(const Kernel& kernel, const std::vector<std::vector<std::byte>>& buffers,
                    const std::vector<int64_t>& params, int64_t lo, int64_t hi);
Outcome called(KernelFunction function, const Kernel& kernel, const std::vector<std::vector<std::byte>>& buffers,
               const std::vector<int64_t>& params, int64_t lo, int64_t hi);
/// What differs first, any NaN being equal to any NaN; empty where nothing does.
std::string difference(const Kernel& kernel, const Outcome& wanted, const Outcome& got);

}  // namespace tenon::compile

// Running a kernel in tests: in the interpreter, as machine code, or both.
#pragma once
#include <vector>

#include "tenon/compile/interpret.h"

namespace tenon::compile {

template <class T>
Span span_of(std::vector<T>& v) {
  return {v.data(), v.size() * sizeof(T)};
}

int run(const Kernel& kernel, std::vector<Span> buffers, std::vector<int64_t> params, int64_t lo, int64_t hi);

}  // namespace tenon::compile

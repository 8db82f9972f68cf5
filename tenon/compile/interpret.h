// Runs Kernel IR one iteration after another: the meaning that both emitters are compared with.
#pragma once
#include <span>

#include "tenon/compile/kernel.h"

namespace tenon::compile {

struct Span {
  void* data = nullptr;
  uint64_t bytes = 0;
};

/// A kernel that loads or stores outside its memory is an InternalError. Returns the status.
int interpret(const Kernel& kernel, std::span<const Span> buffers, std::span<const int64_t> params, Span scratch,
              int64_t lo, int64_t hi);

}  // namespace tenon::compile

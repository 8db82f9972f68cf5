// Kernels made at random, and memory for them. The same seed gives the same kernel.
#pragma once
#include "tenon/compile/kernel.h"

namespace tenon::compile {

struct RandomKernel {
  Kernel kernel;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<int64_t> params;
  int64_t lo = 0, hi = 0;
};
RandomKernel random_kernel(uint32_t seed);

}  // namespace tenon::compile

// How a generated kernel is called: runtime/abi.h says it for every back end.
#pragma once
#include "runtime/abi.h"

namespace tenon::compile {

/// Works on [lo, hi) of the outermost loop. 0, or the union of the status bits of the `fault`s that held.
using KernelFunction = tenon_kernel;

}  // namespace tenon::compile

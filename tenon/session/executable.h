// A program made ready once, to be run often.
#pragma once
#include "tenon/graph/convention.h"
#include "tenon/loop/program.h"

namespace tenon {

/// The lowered program, what its inputs and outputs mean, and the guards on the caller's arguments. It is not changed
/// by running: any number of sessions on any number of threads may share one.
struct Executable {
  loop::Program program;
  CallingConvention convention;
};

}  // namespace tenon

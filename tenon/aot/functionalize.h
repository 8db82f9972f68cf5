// From a program that writes and aliases to a pure graph with a calling convention.
#pragma once
#include "tenon/export/exported_program.h"
#include "tenon/graph/convention.h"

namespace tenon {

struct FunctionalProgram {
  Graph graph;                    // no writes, no aliasing between values that matters
  CallingConvention convention;   // what every input and output means
};

/// Views become reads of a base, writes become new versions of it, mutated inputs and buffers become Updated outputs; random ops
/// take an explicit key. The program is normalised first. Unknown operators are listed, all of them, in one Error.
FunctionalProgram functionalize(const ExportedProgram& program);

}  // namespace tenon

// From a program that writes and aliases to a pure graph with a calling convention.
#pragma once
#include "tenon/export/exported_program.h"
#include "tenon/graph/convention.h"

namespace tenon {

struct FunctionalProgram {
  Graph graph;                   // no writes, no aliasing between values that matters
  CallingConvention convention;  // what every input and output means
};

/// Views become reads of a base, writes become new versions of it, mutated inputs and buffers become Updated outputs;
/// random ops take an explicit key. The program is normalized first. Unknown operators are listed, all of them, in one
/// Error.
///
/// State that shares storage, and of which some is written, is one memory: every tensor over it gets the update. The
/// same for user inputs, where `user_inputs` (flattened, tensors of the call at hand) says which share.
inline constexpr std::string_view sharing_key = "tenon.shared_inputs";  // in metadata: the convention's `sharing`
FunctionalProgram functionalize(const ExportedProgram& program, const std::vector<CallArg>& user_inputs = {});
/// The same, from the program's graph already normalized.
FunctionalProgram functionalize(const ExportedProgram& program, const Graph& normalized,
                                const std::vector<CallArg>& user_inputs);

}  // namespace tenon

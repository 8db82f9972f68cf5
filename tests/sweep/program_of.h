// A recorded call as a program.
#pragma once
#include "tenon/export/exported_program.h"
#include "tests/sweep/recording.h"

namespace tenon::sweep {

/// A program whose graph is this one call: every tensor is a user input, in the order of arguments, every result a user
/// output.
ExportedProgram program_of(const Op& op, const Case& recorded);

}  // namespace tenon::sweep

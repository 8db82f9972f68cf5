// The conditions under which a program was exported.
#pragma once
#include "tenon/export/exported_program.h"
#include "tenon/graph/convention.h"

namespace tenon {

/// The guards of a program over its flattened arguments. One about something that arguments do not say (an attribute of
/// the model) is left out.
std::vector<InputGuard> guards_of(const ExportedProgram& program);

}  // namespace tenon

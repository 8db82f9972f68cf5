// The conditions under which a program was exported.
#pragma once
#include "tenon/export/exported_program.h"
#include "tenon/graph/convention.h"

namespace tenon {

/// The guards of a file over the sizes and numbers that the inputs of its functional graph have. One about something
/// that arguments do not say (an attribute of the model), and one that these sizes meet by themselves, is left out.
std::vector<sym::Guard> guards_of(const ExportedProgram& program, const GraphBody& graph,
                                  const CallingConvention& convention);

}  // namespace tenon

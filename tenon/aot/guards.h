// The conditions under which a program was exported.
#pragma once
#include <span>

#include "tenon/export/exported_program.h"

namespace tenon {

/// Evaluates the guards of a program for flattened user inputs. One that does not hold is an Error which says it and
/// the numbers in it. A guard about something that inputs do not say (an attribute of the model) is passed over.
void check_guards(const ExportedProgram& program, std::span<const CallArg> inputs);

}  // namespace tenon

// Which programs can be more than shown and converted, and moving one to the CPU.
#pragma once
#include <optional>
#include <string>

#include "tenon/export/exported_program.h"

namespace tenon {

/// Why a program cannot be differentiated and run, whatever its operators: tensors on another device than the CPU,
/// complex or sparse tensors, custom objects. Nothing where it can.
std::optional<std::string> why_not_runnable(const ExportedProgram& program);

/// Puts every tensor of the program on the CPU: state, constants, sample inputs, what the graph says of its values, and
/// arguments that name a device. As PyTorch's move_to_device_pass does.
void move_to_cpu(ExportedProgram& program);

}  // namespace tenon

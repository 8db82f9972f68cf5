// Contents for what a program asks for: its arguments, and the state that its file would bring along.
#pragma once
#include <vector>

#include "tenon/export/exported_program.h"

namespace tenon {

/// A tensor of small numbers, laid out as the meta says; an Error where that is too large to be tried.
Tensor sample_tensor(const TensorMeta& meta);

/// A value for each user input: sizes as the example inputs had them.
std::vector<CallArg> sample_arguments(const ExportedProgram& program);
/// The same for every input of the graph, contents of the state among them.
std::vector<CallArg> sample_inputs(const ExportedProgram& program);

/// Gives a program that was read from its JSON alone the parameters, buffers and constants that it names.
void provide_state(ExportedProgram& program);

}  // namespace tenon

// A joint program as an exported program that PyTorch opens.
#pragma once
#include "tenon/aot/joint.h"

namespace tenon {

/// Outputs keep their numbers, updates of buffers stay, gradients follow as further outputs with their kinds. Our own
/// operators are spelled in PyTorch's, grad regions are made from the nodes' flags.
ExportedProgram to_exported(const JointProgram& joint, const ExportedProgram& original);

}  // namespace tenon

// A program as PyTorch prints it.
#pragma once
#include <string>

#include "tenon/export/exported_program.h"

namespace tenon {

/// What print(torch.export.load(file)) shows in PyTorch 2.15: the graph as Python, the signature, the ranges.
std::string to_text(const ExportedProgram& program);

}  // namespace tenon

// Reading .pt2 files.
#pragma once
#include <string>

#include "tenon/export/exported_program.h"

namespace tenon {

struct LoadOptions {
  std::string model;  // which program of a file that holds several; empty: the one called model, or the only one
};

/// Reads and verifies a program written by torch.export.save of PyTorch 2.4 or later; it becomes what PyTorch 2.15
/// would have written of it. Nothing in the file is executed. The weights are mapped and not read: call
/// check_payloads() before using them. Errors name the file and the place in it.
ExportedProgram load_exported(const std::string& path, const OpTable& ops, const LoadOptions& options = {});

/// A program from its JSON alone, without state: what fuzzing and tests of the reader need.
ExportedProgram read_program(std::string_view json, const std::string& subject, const OpTable& ops);

}  // namespace tenon

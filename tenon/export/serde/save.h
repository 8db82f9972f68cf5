// Writing .pt2 files.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "tenon/export/exported_program.h"

namespace tenon {

/// Writes the program as PyTorch 2.15 does (schema 8.20): torch.export.load reads it. The file appears whole or not at
/// all. Weights are checked against their CRCs first. Sample inputs that cannot be read or written are left out, and
/// `warn` is told why.
void save_exported(const ExportedProgram& program, const std::string& path,
                   const std::function<void(const std::string& warning)>& warn = {});

/// The JSON of models/model.json.
std::string to_json(const ExportedProgram& program);

}  // namespace tenon

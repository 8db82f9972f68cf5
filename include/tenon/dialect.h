// Programs in another dialect.
#pragma once
#include <tenon/program.h>

namespace tenon::TENON_INLINE v0 {

struct DecomposeOptions {
  std::string dialect = "core";        // aten: without writes; core: of core ATen operators; training: as exported
  std::vector<std::string> keep = {};  // operators that stay as they are: {"linear", "aten::conv2d"}
};
/// The program as PyTorch's run_decompositions gives it: in the aten dialect as run_decompositions({}), in the core
/// dialect as run_decompositions(), where an operator without a decomposition here stays. Joint programs too.
TENON_PUBLIC ExportedProgram run_decompositions(const ExportedProgram& program, const DecomposeOptions& options = {});

}  // namespace tenon::TENON_INLINEv0

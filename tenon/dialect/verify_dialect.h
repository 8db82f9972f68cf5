// Whether a program is what its dialect says.
#pragma once
#include "tenon/dialect/run_decompositions.h"

namespace tenon {

/// An Error that names the first node which has no place in the dialect, and why. The training dialect takes what
/// verify() takes. The aten dialect has no writes and no composites that alias. The core dialect has core ATen
/// operators alone, besides control flow, assertions and arithmetic on sizes; `keep` names further ones it may have.
void verify_dialect(const ExportedProgram& program, Dialect dialect, const std::vector<std::string>& keep = {});

}  // namespace tenon

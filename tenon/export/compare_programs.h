// In what two programs differ.
#pragma once
#include <string>
#include <vector>

#include "tenon/export/exported_program.h"

namespace tenon {

/// Sentences and lines, in the order graph, signature, state, the rest; empty where there is nothing to say.
struct ProgramDifferences {
  std::vector<std::string> graph;      // lines of the printed graph: "- " of the first, "+ " of the second
  std::vector<std::string> signature;  // what inputs and outputs mean, trees of arguments and results
  std::vector<std::string> state;      // parameters, buffers and constants: names, metas, elements
  std::vector<std::string> rest;       // dialect, ranges of sizes, guards, module calls
  bool none() const { return graph.empty() && signature.empty() && state.empty() && rest.empty(); }
};
ProgramDifferences compare_programs(const ExportedProgram& a, const ExportedProgram& b);
std::string to_text(const ProgramDifferences& differences);

}  // namespace tenon

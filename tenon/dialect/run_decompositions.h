// A program in another dialect: composites replaced by what they are made of, writes by values, as PyTorch's
// ExportedProgram.run_decompositions does it.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tenon/export/exported_program.h"
#include "tenon/rules/op_def.h"

namespace tenon {

enum class Dialect : uint8_t {
  training,  // as torch.export.export gives it: writes, regions, composites
  aten,      // functional; composites that neither write nor alias stay: run_decompositions({})
  core,      // functional, of core ATen operators as far as there are decompositions: run_decompositions()
};
std::optional<Dialect> dialect_named(std::string_view name);

struct DecomposeOptions {
  Dialect to = Dialect::core;
  std::vector<std::string>
      keep;  // operators that stay as they are: "aten::linear", "linear", "torch.ops.aten.linear.default"
  std::map<std::string, std::function<Results(Build&)>> table;  // decompositions of one's own, by aten::name
};

/// The program in that dialect. Names, arguments, signature and metadata are those PyTorch gives its result; joint
/// programs, which PyTorch does not decompose, are handled alike. An operator to be kept that writes keeps its form
/// without writes; one that aliases is kept where nothing writes to what it shares, which is an Error otherwise.
/// Towards training there is nothing to do but for programs that are there already.
ExportedProgram run_decompositions(const ExportedProgram& program, const DecomposeOptions& options = {});

}  // namespace tenon

// The compiler on one page: from a file to results, stage by stage.
#pragma once
#include <optional>
#include <string>

#include "tenon/aot/joint.h"
#include "tenon/aot/partition.h"
#include "tenon/aot/run.h"

namespace tenon {

enum class StageName : uint8_t { read, normalized, functional, joint, partition, loops };
std::optional<StageName> stage_named(std::string_view name);

struct ShowOptions {
  StageName after = StageName::read;
  size_t of = 0;  // joint, partition
  Wrt wrt;
};

/// Reads and verifies a file.
ExportedProgram open_program(const std::string& path);
/// Operators of the program that Tenon does not have, each once, sorted.
std::vector<std::string> missing_operators(const ExportedProgram& program);
/// The program after a stage, as text.
std::string show(const ExportedProgram& program, const ShowOptions& options);
/// Runs it: inputs as flattened user arguments. A file that tenon grad wrote gives its gradients.
RunResult run_program(const ExportedProgram& program, const std::vector<CallArg>& inputs,
                      const RunOptions& options = {});
/// The joint program of user output `of`, as a program that can be written to a file.
ExportedProgram differentiate(const ExportedProgram& program, size_t of, const Wrt& wrt);

}  // namespace tenon

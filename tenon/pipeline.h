// The compiler on one page: from a file to results, stage by stage.
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "tenon/aot/joint.h"
#include "tenon/aot/partition.h"
#include "tenon/session/session.h"

namespace tenon {

enum class StageName : uint8_t { read, normalized, functional, joint, partition, loops };
std::optional<StageName> stage_named(std::string_view name);

struct ShowOptions {
  StageName after = StageName::read;
  size_t of = 0;  // joint, partition
  Wrt wrt;
};

struct OpenOptions {
  std::string model;         // which program of a file that holds several
  bool move_to_cpu = false;  // a program that was exported on another device
};

/// Reads and verifies a file.
ExportedProgram open_program(const std::string& path, const OpenOptions& options = {});
/// Operators of the program that Tenon does not have, each once, sorted.
std::vector<std::string> missing_operators(const ExportedProgram& program);
/// The program after a stage, as text.
std::string show(const ExportedProgram& program, const ShowOptions& options);
/// A functional program made ready to run: decomposed, lowered.
std::shared_ptr<const Executable> prepare(const FunctionalProgram& functional);
/// Parameters, buffers and constants of a program, shared with it until a run writes them.
std::unique_ptr<State> state_of(const ExportedProgram& program, uint64_t seed = 0);

/// The executables of a program. Which of the caller's tensors share memory, and are written, changes what must be
/// computed: an executable is made for each such pattern when it is first seen, and kept. Safe from many threads.
class Executables {
 public:
  explicit Executables(const ExportedProgram& program) : program_(program) {}   // which must outlive it
  std::shared_ptr<const Executable> for_inputs(const std::vector<CallArg>& inputs);

 private:
  const ExportedProgram& program_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Executable>> by_pattern_;
};

struct RunProgramOptions {
  uint64_t seed = 0;             // of random operators
  bool absent_are_ones = false;  // tensors that are none: cotangents whose size only the run tells
};
/// Prepares and runs once: inputs as flattened user arguments. Neither they nor the program's state are written: updates
/// are in the result. A file that tenon grad wrote gives its gradients.
RunResult run_program(const ExportedProgram& program, const std::vector<CallArg>& inputs, const RunProgramOptions& options = {});
RunResult run_functional(const FunctionalProgram& functional, const ExportedProgram& program, const std::vector<CallArg>& inputs,
                         const RunProgramOptions& options = {});
/// The joint program of user output `of`, as a program that can be written to a file.
ExportedProgram differentiate(const ExportedProgram& program, size_t of, const Wrt& wrt);

}  // namespace tenon

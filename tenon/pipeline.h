// The compiler on one page: from a file to results, stage by stage.
#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "tenon/aot/joint.h"
#include "tenon/aot/partition.h"
#include "tenon/optimize/pack_weights.h"
#include "tenon/passes/driver.h"
#include "tenon/rules/lowering_options.h"
#include "tenon/session/session.h"

namespace tenon {

enum class StageName : uint8_t {
  read,
  normalized,
  functional,
  joint,
  partition,
  loops,
  folded,
  fused,
  packed,
  kernels
};
std::optional<StageName> stage_named(std::string_view name);

struct WalkOptions {
  size_t of = 0;                        // joint, partition: the user output that is differentiated
  Wrt wrt;                              // and with respect to what
  std::optional<double> memory_budget;  // of the backward, from 0 to 1: see rematerialize; none: everything is kept
  std::vector<CallArg> inputs;          // flattened arguments: which of them share memory matters to what they update
  LoweringOptions lowering;
  optimize::PackOptions packing;  // of fixed weights
};

/// The one walk of a program through the stages. Each stage is made when it is first asked for, by the passes before
/// it, and kept; everything that shows, differentiates or runs a program takes it from here.
class Walk {
 public:
  /// The program must outlive the walk.
  explicit Walk(const ExportedProgram& program, WalkOptions options = {});
  ~Walk();
  const ExportedProgram& program() const { return program_; }
  const Graph& normalized();
  const FunctionalProgram& functional();
  const JointProgram& joint();
  const TrainingProgram& partition();
  std::shared_ptr<const Executable> executable();
  std::shared_ptr<const Executable> executable_after(StageName stage);  // loops or later; not kept
  const std::vector<PassRecord>& passes() const { return driver_.records(); }

 private:
  const ExportedProgram& program_;
  WalkOptions options_;
  PassDriver driver_;
  std::optional<Graph> normalized_;
  std::optional<FunctionalProgram> functional_;
  std::optional<JointProgram> joint_;
  bool rematerialized_ = false;
  std::optional<TrainingProgram> partition_;
  std::shared_ptr<const Executable> executable_;
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
std::string show(Walk& walk, StageName after);
/// A functional program made ready to run: decomposed, lowered, optimized. Up to `fused` every bit is as lowered.
std::shared_ptr<const Executable> prepare(const FunctionalProgram& functional, PassDriver& driver,
                                          StageName until = StageName::packed,
                                          const optimize::PackOptions& packing = {});
std::shared_ptr<const Executable> prepare(const FunctionalProgram& functional, StageName until = StageName::packed);
/// Parameters, buffers and constants of a program, shared with it until a run writes them.
std::unique_ptr<State> state_of(const ExportedProgram& program, uint64_t seed = 0);

/// The executables of a program. Which of the caller's tensors share memory, and are written, changes what must be
/// computed: an executable is made for each such pattern when it is first seen, and kept. Safe from many threads.
class Executables {
 public:
  explicit Executables(const ExportedProgram& program) : program_(program) {}  // which must outlive it
  std::shared_ptr<const Executable> for_inputs(const std::vector<CallArg>& inputs);
  std::function<void()> before_preparing;                               // where set, called when one has to be made
  std::function<void(const std::vector<PassRecord>&)> after_preparing;  // and with what was run to make it

 private:
  const ExportedProgram& program_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Executable>> by_pattern_;
};

/// What compiling a program needs. Arguments of a compiled program have memory of their own: samples that share memory
/// which the program writes are left out, as are those that cannot be read; `warning` says so.
struct Compilable {
  std::shared_ptr<const Executable> executable;
  std::unique_ptr<State> state;
  std::optional<std::vector<CallArg>> samples;
  std::vector<std::string> parameters;  // names of the exported function's
  std::string warning;
};
Compilable prepare_to_compile(Walk& walk);

struct RunProgramOptions {
  uint64_t seed = 0;                    // of random operators
  bool absent_are_ones = false;         // tensors that are none: cotangents whose size only the run tells
  StageName until = StageName::packed;  // the last stage that is made, as of prepare
};
/// Prepares and runs once: inputs as flattened user arguments. Neither they nor the program's state are written:
/// updates are in the result. A file that tenon grad wrote gives its gradients.
RunResult run_program(const ExportedProgram& program, const std::vector<CallArg>& inputs,
                      const RunProgramOptions& options = {});
RunResult run_program(Walk& walk, const std::vector<CallArg>& inputs, const RunProgramOptions& options = {});
RunResult run_functional(const FunctionalProgram& functional, const ExportedProgram& program,
                         const std::vector<CallArg>& inputs, const RunProgramOptions& options = {});
/// The joint program of user output `of`, as a program that can be written to a file. It sees memory shared as the
/// stored sample inputs share it. Of a joint program the gradients count as further outputs, behind the others, and can
/// be differentiated again.
ExportedProgram differentiate(const ExportedProgram& program, size_t of, const Wrt& wrt);
ExportedProgram differentiate(Walk& walk);

}  // namespace tenon

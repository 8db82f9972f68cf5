// Runs an executable: checks the caller's arguments, binds state, executes, hands out results.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tenon/session/executable.h"
#include "tenon/session/state.h"
#include "tenon/tensor/dispatch.h"

namespace tenon {

namespace interp {
class ProgramRunner;
}

struct RunOptions {
  bool absent_are_ones = false;  // tensors that are none: cotangents whose size only the run tells
};

/// A result by what it means. Keys as the command line writes them: output_0, buffer.<name>, input.<name>, grad.<name>.
struct RunResult {
  std::vector<CallArg> outputs;                            // flattened: tensors, numbers, strings, none
  std::vector<std::pair<std::string, Tensor>> buffers;     // the buffers the program updated, with their new contents
  std::vector<std::pair<std::string, Tensor>> parameters;  // likewise parameters
  std::vector<std::pair<std::string, Tensor>> inputs;  // likewise user inputs (all that share the storage written to)
  std::vector<std::pair<std::string, Tensor>> gradients;  // under each name of a parameter
};

/// Memory to run one executable in; for one thread at a time. Threads that run at once have a session each.
class Session {
 public:
  explicit Session(std::shared_ptr<const Executable> executable);
  ~Session();
  Session(Session&&) noexcept;

  /// `inputs` are the flattened user arguments: tensors, or constants that must equal those the program was specialized
  /// to. Shapes, dtypes, ranges and guards are checked; a wrong one is an Error that names the input, the dimension,
  /// what was expected and what came, and nothing has been written then. State and inputs that the program updates are
  /// written in place. A program that draws numbers draws others at every run.
  RunResult run(State& state, const std::vector<CallArg>& inputs, const RunOptions& options = {});
  const Executable& executable() const { return *executable_; }

 private:
  std::shared_ptr<const Executable> executable_;  // shared: by all sessions
  std::unique_ptr<interp::ProgramRunner> runner_;
  bool writes_state_ = false;
};

}  // namespace tenon

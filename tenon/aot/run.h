// Runs a functional program under its calling convention with the interpreter.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tenon/aot/functionalize.h"

namespace tenon {

struct RunOptions {
  uint64_t seed = 0;             // of random operators
  bool absent_are_ones = false;  // tensors that are none: cotangents whose size only the run tells
};

/// A result by what it means. Keys as the command line writes them: output_0, buffer.<name>, input.<name>, grad.<name>.
struct RunResult {
  std::vector<CallArg> outputs;                            // flattened: tensors, numbers, strings, none
  std::vector<std::pair<std::string, Tensor>> buffers;     // new contents of the buffers the program updated
  std::vector<std::pair<std::string, Tensor>> parameters;  // likewise of parameters
  std::vector<std::pair<std::string, Tensor>>
      inputs;  // likewise of user inputs (all that share the storage written to)
  std::vector<std::pair<std::string, Tensor>> gradients;  // under each name of a parameter
};

/// `inputs` are the flattened user arguments: tensors, or constants that must equal those the program was specialized
/// to. Shapes, dtypes and ranges are checked; a wrong one is an Error that names the input, the dimension, what was
/// expected and what came. The caller's tensors are not written: updates come back in the result.
RunResult run(const FunctionalProgram& functional, const ExportedProgram& state, const std::vector<CallArg>& inputs,
              const RunOptions& options = {});

}  // namespace tenon

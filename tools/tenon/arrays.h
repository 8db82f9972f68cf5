// Arguments of a program from .npz files, and its results as arrays: which key is which input, and what NumPy has no
// dtype for.
#pragma once
#include <string>
#include <vector>

#include "tenon/artifact/compiled_program.h"
#include "tenon/io/npy.h"
#include "tenon/pipeline.h"

namespace tenon::tool {

/// What a program takes, flattened.
struct ExpectedInput {
  std::string name;
  loop::Input::Type type = loop::Input::Type::tensor;
  TensorMeta meta;         // tensor
  SymInt number = 0;       // in terms of the symbols
  CallArg constant;        // what it was specialized to
  bool is_object = false;  // nothing that a file of arrays can hold
  bool cotangent = false;  // ones where it is left out
};
std::vector<ExpectedInput> expected_inputs(const ExportedProgram& program);
std::vector<ExpectedInput> expected_inputs(const artifact::CallSignature& signature);

/// The flattened arguments of a call. Keys are input names or arr_N by position. A constant may be left out; a
/// cotangent (tangent_output_N of a joint program) too, it is ones then. Where a key is unknown or an input is missing,
/// the Error lists what is expected. `file` names the arrays' file in messages.
std::vector<CallArg> arguments_from(const std::vector<ExpectedInput>& inputs, const std::vector<NamedArray>& arrays,
                                    const std::string& file);

/// Of a compiled program: from a file of arrays, or the samples it keeps where `arrays` is empty.
std::vector<CallArg> compiled_arguments(const artifact::CompiledProgram& program, const std::string& file,
                                        const std::string& arrays);

struct NamedResult {
  std::string key;  // output_0, buffer.<name>, parameter.<name>, input.<name>, grad.<name>
  CallArg value;
};
std::vector<NamedResult> named_results(const RunResult& result);
struct ArrayOptions {
  bool bfloat = false;  // the file has bfloat16; otherwise it becomes float32
};
/// None and strings have no array.
std::vector<NamedArray> to_arrays(const std::vector<NamedResult>& results, const ArrayOptions& options = {});
/// "f32[2, 3]  [0.5, 1, 2, ...]", or the number, string or None it is.
std::string summary(const CallArg& value);

}  // namespace tenon::tool

// What an artifact's inputs, outputs and state mean to the caller of the program it was compiled from: kept as JSON in
// the artifact's metadata, so that a compiled program is called as its .pt2 file is.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tenon/base/tree.h"
#include "tenon/graph/convention.h"
#include "tenon/loop/program.h"

namespace tenon::artifact {

/// An output of the tables.
struct Result {
  enum class Kind : uint8_t { user, viewed, gradient } kind = Kind::user;
  size_t leaf = 0;                 // user: which flattened result
  std::vector<std::string> names;  // viewed, gradient: of what
  bool number = false;             // it is handed out as a number, not as a tensor
};

/// What a run leaves new contents in: state under all its names, or an argument of the caller's.
struct Update {
  enum class Kind : uint8_t { parameter, buffer, input } kind = Kind::buffer;
  std::string state;               // the entry's name in the tables
  std::vector<std::string> names;  // parameter, buffer
  size_t input = 0;                // of the tables
};

/// Sample arguments lie behind the weights.
struct Sample {
  size_t leaf = 0;
  DType dtype = DType::f32;
  std::vector<int64_t> sizes, strides;
  uint64_t offset = 0, bytes = 0;
};

struct CallSignature {
  std::vector<loop::Input> inputs;  // of the tables: name, meta, number, type
  std::vector<size_t> leaves;       // which flattened argument each is
  std::vector<Result> results;
  std::vector<Update> updates;
  std::vector<std::string> names;  // of the flattened arguments
  std::vector<CallArg> constants;  // per flattened argument: what it was specialized to; none for a tensor or number
  std::vector<CallArg> outputs;    // per flattened result: none, or the constant that it is
  std::vector<std::string> parameters;  // of the function that was exported, by position; may be unknown
  Tree in, out;
  sym::Ranges ranges;
  std::vector<Sample> samples;
  bool has_samples = false;  // a program without tensor arguments has some, too
};

std::string to_json(const CallSignature& signature);
/// `subject` names the file in messages.
CallSignature parse_signature(std::string_view json, const std::string& subject);

}  // namespace tenon::artifact

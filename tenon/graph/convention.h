// What every input and output of a pure graph means, by typed descriptors. Nothing counts positions: what happens
// around the pure function (binding state, copying updates back, handing out results) is driven by this alone.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "tenon/base/tree.h"
#include "tenon/graph/graph.h"

namespace tenon {

namespace input {
struct Parameter {
  std::vector<std::string> names;
  bool operator==(const Parameter&) const = default;
};  // one tensor, all its names
struct Buffer {
  std::vector<std::string> names;
  bool persistent = true;
  bool operator==(const Buffer&) const = default;
};
struct Constant {
  std::string name;
  bool operator==(const Constant&) const = default;
};
struct User {
  size_t leaf = 0;
  std::string name;
  bool operator==(const User&) const = default;
};  // the caller's flattened argument
struct Tangent {
  size_t output = 0;
  bool operator==(const Tangent&) const = default;
};  // cotangent of a user output
struct Saved {
  std::string name;
  bool operator==(const Saved&) const = default;
};  // kept by the forward for the backward
struct SavedSize {
  std::string symbol;
  bool operator==(const SavedSize&) const = default;
};  // a size the backward needs and none of its tensors has
struct RngState {
  bool operator==(const RngState&) const = default;
};
}  // namespace input
using InputMeaning = std::variant<input::Parameter, input::Buffer, input::Constant, input::User, input::Tangent,
                                  input::Saved, input::SavedSize, input::RngState>;

namespace output {
struct User {
  size_t leaf = 0;
  bool operator==(const User&) const = default;
};  // the caller's flattened result
struct Updated {
  size_t input = 0;
  bool operator==(const Updated&) const = default;
};  // new contents of an input of this graph
struct Viewed {
  size_t input = 0;
  bool operator==(const Viewed&) const = default;
};  // an input whose sizes, strides or place the program changed (t_, unsqueeze_): what that tensor is afterwards
struct Gradient {
  size_t input = 0;
  bool operator==(const Gradient&) const = default;
};  // of an input of the joint graph
struct Saved {
  std::string name;
  bool operator==(const Saved&) const = default;
};
struct SavedSize {
  std::string symbol;
  bool operator==(const SavedSize&) const = default;
};
}  // namespace output
using OutputMeaning =
    std::variant<output::User, output::Updated, output::Viewed, output::Gradient, output::Saved, output::SavedSize>;

/// A user output that shares storage with an input, or with another output, in the original program.
struct Alias {
  size_t leaf = 0;                                 // the user output
  enum Of : uint8_t { input, output } of = input;  // whose storage
  size_t index = 0;                                // graph input, or user output leaf
  bool whole = false;                              // it is that tensor itself, not a view of it
};

struct CallingConvention {
  std::vector<InputMeaning> inputs;    // one per graph input
  std::vector<OutputMeaning> outputs;  // one per graph output
  std::vector<Alias> aliases;
  std::vector<CallArg>
      user_inputs;  // per flattened argument: none for a tensor, else the constant it was specialized to
  std::vector<CallArg>
      user_outputs;  // per flattened result: none for a tensor or number of the graph, else the constant
  std::vector<std::string> user_names;  // names of flattened arguments
  Tree in, out;
  std::vector<sym::Guard> guards;  // what the program was exported under, over the sizes of its inputs
  std::string sharing;             // which of the caller's tensors share memory that is written, in words; empty: none
};

std::string to_text(const InputMeaning& meaning);  // parameter fc.weight
std::string to_text(const OutputMeaning& meaning,
                    const CallingConvention& convention);  // updated buffer bn.running_mean
/// The name a gradient, an update or an input goes by outside: the parameter's first name, or the user input's.
std::string public_name(const InputMeaning& meaning);
bool is_state(const InputMeaning& meaning);  // parameter, buffer or constant

}  // namespace tenon

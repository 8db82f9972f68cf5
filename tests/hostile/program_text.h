// Programs as the text that a file holds, written piece by piece: also such as no PyTorch writes.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenon/tensor/meta.h"

namespace tenon {

/// The graph of a program, or one within.
struct GraphText {
  std::string inputs, outputs, nodes, tensors, ints, floats, bools;

  /// Describes a tensor value.
  void tensor(std::string_view name, const TensorMeta& meta);
  /// Describes a number; `expr` as JSON: {"as_int": 3}.
  void number(std::string_view name, std::string_view expr);
  /// A node; arguments as (name, JSON), results as JSON.
  void node(std::string_view target, const std::vector<std::pair<std::string, std::string>>& args,
            const std::vector<std::string>& results, std::string_view more = "");
  void input(std::string_view json) { add(inputs, json); }
  void output(std::string_view json) { add(outputs, json); }
  std::string json() const;

  static void add(std::string& list, std::string_view item) {
    if (!list.empty()) list += ", ";
    list += item;
  }
};

struct ProgramText : GraphText {
  std::string input_specs, output_specs, ranges, module_calls, guards, opset, metadata;
  size_t user_inputs = 0, user_outputs = 0;

  /// A user input, described and listed.
  void user_input(std::string_view name, const TensorMeta& meta);
  /// Something of the state, by that name in the weights.
  void parameter(std::string_view name, const TensorMeta& meta);
  void buffer(std::string_view name, const TensorMeta& meta);
  void user_output(std::string_view name);
  void range(std::string_view symbol, int64_t least, int64_t most);
  std::string program_json() const;  // models/model.json

  /// An archive around it: entries of weights, extra files and sample inputs as given, by their names below the root.
  std::string archive(const std::vector<std::pair<std::string, std::string>>& entries = {}) const;
};

/// An archive of entries, deflated or not.
std::string archive_of(const std::vector<std::pair<std::string, std::string>>& entries, bool deflated);

std::string as_tensor(std::string_view name);                    // {"as_tensor": {"name": ...}}
std::string as_expr(std::string_view expression, int64_t hint);  // {"as_expr": ...}
std::string json_string(std::string_view text);
std::string meta_json(const TensorMeta& meta);  // sizes may be symbolic

}  // namespace tenon

// The caller's trees of arguments as the flat list a program takes, and its flat results as trees.
#pragma once
#include "tenon/api/access.h"

namespace tenon::v0::detail {

struct Arguments {
  std::vector<tenon::CallArg> leaves;
  bool absent_are_ones = false;  // a cotangent was left out
};

/// Matches arguments with the program's tree: lists with lists and tuples with tuples and named tuples of their length,
/// dictionaries with dictionaries of the same keys in any order, keywords by name. A wrong one is an Error that names
/// its path: inputs["ids"][1]: expected i64[2, s0], got f32[2, 3].
Arguments flatten(const tenon::ExportedProgram& program, const std::vector<Value>& args, const Kwargs& kwargs);
Value unflatten(const tenon::Tree& tree, const std::vector<tenon::CallArg>& leaves);

}  // namespace tenon::v0::detail

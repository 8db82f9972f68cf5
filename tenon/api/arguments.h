// The caller's trees of arguments as the flat list a program takes, and its flat results as trees.
#pragma once
#include "tenon/api/access.h"
#include "tenon/artifact/signature.h"

namespace tenon::v0::detail {

struct Arguments {
  std::vector<tenon::CallArg> leaves;
  bool absent_are_ones = false;  // a cotangent was left out
};

/// What a program takes.
struct Takes {
  struct Leaf {
    std::string name;
    enum class Kind : uint8_t { tensor, number, constant } kind = Kind::tensor;
    tenon::TensorMeta meta;  // tensor
    bool none = false;       // a constant that is None
  };
  tenon::Tree tree;                // positional arguments, then keywords
  std::vector<std::string> names;  // of forward's parameters; may be unknown
  std::vector<Leaf> leaves;
};
Takes takes(const tenon::ExportedProgram& program);
Takes takes(const tenon::artifact::CallSignature& signature);

/// Matches arguments with the program's tree: lists with lists and tuples with tuples and named tuples of their length,
/// dictionaries with dictionaries of the same keys in any order, keywords by name. A wrong one is an Error that names
/// its path: inputs["ids"][1]: expected i64[2, s0], got f32[2, 3].
Arguments flatten(const Takes& takes, const std::vector<Value>& args, const Kwargs& kwargs);
tenon::CallArg to_call_arg(const Value& value);  // of a leaf
Value unflatten(const tenon::Tree& tree, const std::vector<tenon::CallArg>& leaves);

}  // namespace tenon::v0::detail

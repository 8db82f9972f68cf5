// Nested containers around leaves, as PyTorch's pytree has them: how a program's inputs and outputs are arranged.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// The shape of a tree. A leaf has an empty type. Dict keys, in order, stand in `keys` (each spelled as it is in the
/// file's context: "a", 3), so that leaves have paths.
struct Tree {
  std::string type;     // builtins.tuple, builtins.list, builtins.dict, collections.namedtuple, ... ; empty: a leaf
  std::string context;  // the context string as in the file
  std::vector<std::string> keys;
  std::vector<Tree> children;

  bool is_leaf() const { return type.empty(); }
  size_t leaves() const;
  bool operator==(const Tree&) const = default;
};

}  // namespace tenon

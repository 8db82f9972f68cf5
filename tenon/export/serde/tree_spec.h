// PyTorch's treespec strings: [1, {"type": "builtins.tuple", "context": "null", "children_spec": [...]}].
#pragma once
#include <string>
#include <string_view>

#include "tenon/base/tree.h"
#include "tenon/io/json.h"

namespace tenon {

/// `subject` names the text in messages.
Tree parse_tree_spec(std::string_view json, std::string subject = "tree spec");
/// The same of a string of another document.
Tree parse_tree_spec(Json string);
std::string to_tree_spec(const Tree& tree);

}  // namespace tenon

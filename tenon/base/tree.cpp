#include "tenon/base/tree.h"

#include "tenon/base/text.h"

namespace tenon {

size_t Tree::leaves() const {
  if (is_leaf()) return 1;
  size_t total = 0;
  for (const Tree& child : children) total += child.leaves();
  return total;
}

namespace {
void collect(const Tree& tree, const std::string& path, std::vector<std::string>& out) {
  if (tree.is_leaf()) {
    out.push_back(path);
    return;
  }
  for (size_t i = 0; i < tree.children.size(); ++i) {
    std::string key = i < tree.keys.size() ? tree.keys[i] : text(i);
    collect(tree.children[i], path + "[" + key + "]", out);
  }
}
}  // namespace

std::vector<std::string> leaf_paths(const Tree& tree) {
  std::vector<std::string> out;
  collect(tree, "", out);
  return out;
}

}  // namespace tenon

#include "tenon/base/tree.h"

namespace tenon {

size_t Tree::leaves() const {
  if (is_leaf()) return 1;
  size_t total = 0;
  for (const Tree& child : children) total += child.leaves();
  return total;
}

}  // namespace tenon

// Which elements of which tensors a stage uses as indices, and what they must lie between: so that the runtime can name
// the one that did not.
#pragma once
#include <span>
#include <vector>

#include "tenon/loop/program.h"

namespace tenon::plan {

struct IndexGuard {
  loop::BufferId indices = 0;
  SymInt lo = 0, hi = 0;  // lo <= element < hi
  bool operator==(const IndexGuard&) const = default;
};

/// Of indices that are an element of a tensor, from the end where it is negative or not. An index that is computed
/// otherwise, or used under a condition, has none: an element that is never used may be anything.
std::vector<IndexGuard> index_guards(const loop::Program& program, const loop::Stage& stage);

}  // namespace tenon::plan

// Where buffers lie in one piece of memory, so that those alive together do not overlap.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace tenon::interp {

struct Lifetime {
  size_t bytes = 0;
  size_t first = 0, last = 0;  // steps, both included
};

/// An offset for each buffer, 64-byte aligned, and the bytes needed in all. Large buffers are placed first, each at the
/// lowest place that no buffer alive at the same time takes.
std::vector<size_t> plan_arena(std::span<const Lifetime> buffers, size_t& bytes);

}  // namespace tenon::interp

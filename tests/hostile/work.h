// How much work code does, counted and not timed.
#pragma once
#include <cstdint>

namespace tenon {

/// Allocations since the program began, their bytes, and, where the code under test was built with coverage of
/// comparisons (the fuzz build), the comparisons it made; 0 elsewhere.
struct Work {
  uint64_t allocations = 0, bytes = 0, comparisons = 0;
};
Work work_done();

}  // namespace tenon

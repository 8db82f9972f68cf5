// From which step to which each buffer holds something.
#pragma once
#include <cstdint>
#include <vector>

#include "tenon/loop/program.h"

namespace tenon::plan {

/// Steps of on_state are numbered as they are listed. Of a view, see its root.
struct Life {
  uint32_t first = ~0u, last = 0;
  bool by_call = false;   // a host function made it
  bool on_state = false;  // it is used there
  bool used() const { return first != ~0u; }
};
/// `number` of each of the program's steps: several that are executed at once have the same.
std::vector<Life> lifetimes(const loop::Program& program, const std::vector<uint32_t>& number);

}  // namespace tenon::plan

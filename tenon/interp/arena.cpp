#include "tenon/interp/arena.h"

#include <algorithm>
#include <numeric>

namespace tenon::interp {

std::vector<size_t> plan_arena(std::span<const Lifetime> buffers, size_t& bytes) {
  constexpr size_t alignment = 64;
  std::vector<size_t> order(buffers.size()), offsets(buffers.size(), 0);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  struct Taken {
    size_t begin, end, buffer;
  };
  std::vector<Taken> placed;  // sorted by begin
  bytes = 0;
  for (size_t i : order) {
    const Lifetime& own = buffers[i];
    size_t need = (own.bytes + alignment - 1) / alignment * alignment, at = 0;
    for (const Taken& t : placed) {
      const Lifetime& other = buffers[t.buffer];
      if (other.last < own.first || own.last < other.first) continue;
      if (at + need <= t.begin) break;
      at = std::max(at, t.end);
    }
    offsets[i] = at;
    Taken taken{at, at + need, i};
    placed.insert(std::upper_bound(placed.begin(), placed.end(), taken,
                                   [](const Taken& a, const Taken& b) { return a.begin < b.begin; }),
                  taken);
    bytes = std::max(bytes, at + need);
  }
  return offsets;
}

}  // namespace tenon::interp

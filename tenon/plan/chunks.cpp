#include "tenon/plan/chunks.h"

#include <algorithm>

namespace tenon::plan {

SymInt fair_grain(SymInt extent, SymInt work, int64_t most_work) {
  if (!extent.is_int() || !work.is_int()) return sym::floor_div(most_work / 2, sym::max(work, 1)) + 1;
  const int64_t all = extent.as_int(), most = std::max<int64_t>(most_work / std::max<int64_t>(work.as_int(), 1), 1);
  auto larger_half = [&](int64_t grain) {
    const int64_t chunks = (all + grain - 1) / grain;
    return (chunks + 1) / 2 * grain;
  };
  const int64_t least = (most + 3) / 4;
  if (all <= least) return SymInt(std::max<int64_t>(all, 1));
  int64_t best = least;
  for (int64_t grain = least + 1; grain <= std::min(most, all); ++grain)
    if (larger_half(grain) < larger_half(best)) best = grain;
  return SymInt(best);
}

}  // namespace tenon::plan

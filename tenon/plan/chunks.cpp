#include "tenon/plan/chunks.h"

#include <algorithm>

namespace tenon::plan {

SymInt fair_grain(SymInt extent, SymInt work, int64_t worth) {
  if (!extent.is_int() || !work.is_int()) return sym::floor_div(worth, sym::max(work, 1)) + 1;
  constexpr int64_t larger = 8;
  const int64_t all = extent.as_int(), each = std::max<int64_t>(work.as_int(), 1);
  auto larger_half = [&](int64_t grain) {
    const int64_t chunks = (all + grain - 1) / grain;
    return (chunks + 1) / 2 * grain;
  };
  const int64_t enough = (worth + each - 1) / each;
  if (all <= enough) return SymInt(std::max<int64_t>(all, 1));
  const int64_t least = std::min(enough, (all + 1) / 2);
  int64_t best = least;
  for (int64_t grain = least + 1; grain <= std::min(larger * enough, all); ++grain)
    if (larger_half(grain) < larger_half(best)) best = grain;
  return SymInt(best);
}

}  // namespace tenon::plan

#include "tenon/interp/arena.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

namespace tenon::interp {
namespace {

struct Taken {
  size_t begin, end, buffer;
};

/// Lifetimes that were placed, found by the steps that they last through.
class Timeline {
 public:
  explicit Timeline(size_t steps) : lasting_(2 * std::bit_ceil(steps + 1)) {}

  void add(const Lifetime& life, const Taken& taken) {
    starting_.emplace(life.first, taken);
    for_each_part(life.first, life.last, [&](size_t part) { lasting_[part].push_back(taken); });
  }
  /// Those that are there at some step of this one, where they are at most so many.
  bool find(const Lifetime& life, size_t most, std::vector<Taken>& found) const {
    found.clear();
    for (size_t part = life.first + lasting_.size() / 2; part > 0; part /= 2) {
      if (found.size() + lasting_[part].size() > most) return false;
      found.insert(found.end(), lasting_[part].begin(), lasting_[part].end());
    }
    for (auto it = starting_.upper_bound(life.first); it != starting_.end() && it->first <= life.last; ++it) {
      if (found.size() == most) return false;
      found.push_back(it->second);
    }
    return true;
  }

 private:
  // The fewest halves of halves of all steps that a span consists of.
  template <class F>
  void for_each_part(size_t first, size_t last, const F& visit) {
    size_t l = first + lasting_.size() / 2, r = last + lasting_.size() / 2 + 1;
    for (; l < r; l /= 2, r /= 2) {
      if (l % 2 == 1) visit(l++);
      if (r % 2 == 1) visit(--r);
    }
  }

  std::vector<std::vector<Taken>> lasting_;  // a tree of halves: whatever lasts through all of one
  std::multimap<size_t, Taken> starting_;
};

}  // namespace

std::vector<size_t> plan_arena(std::span<const Lifetime> buffers, size_t& bytes) {
  constexpr size_t alignment = 64;
  std::vector<size_t> order(buffers.size()), offsets(buffers.size(), 0);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  size_t steps = 0;
  for (const Lifetime& life : buffers) steps = std::max(steps, life.last);
  Timeline timeline(steps);
  auto before = [](const Taken& a, const Taken& b) { return a.begin < b.begin; };
  std::vector<Taken> placed, beside;
  size_t sorted = 0;  // of `placed`, from its beginning
  bytes = 0;
  for (size_t i : order) {
    const Lifetime& own = buffers[i];
    size_t need = (own.bytes + alignment - 1) / alignment * alignment, at = 0;
    // Where many are alive at once, looking at all of them in their order costs less than to sort them.
    bool few = timeline.find(own, placed.size() / 16 + 8, beside);
    if (few) {
      std::sort(beside.begin(), beside.end(), before);
    } else {
      auto added = placed.begin() + static_cast<ptrdiff_t>(sorted);
      std::sort(added, placed.end(), before);
      std::inplace_merge(placed.begin(), added, placed.end(), before);
      sorted = placed.size();
    }
    for (const Taken& t : few ? beside : placed) {
      const Lifetime& other = buffers[t.buffer];
      if (other.last < own.first || own.last < other.first) continue;
      if (at + need <= t.begin) break;
      at = std::max(at, t.end);
    }
    offsets[i] = at;
    Taken taken{at, at + need, i};
    placed.push_back(taken);
    timeline.add(own, taken);
    bytes = std::max(bytes, at + need);
  }
  return offsets;
}

}  // namespace tenon::interp

#include "tenon/interp/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tenon::interp {
namespace {

void expect_apart(const std::vector<Lifetime>& buffers) {
  size_t bytes = 0;
  std::vector<size_t> offsets = plan_arena(buffers, bytes);
  ASSERT_EQ(offsets.size(), buffers.size());
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(offsets[i] % 64, 0u);
    EXPECT_LE(offsets[i] + buffers[i].bytes, bytes);
    for (size_t j = 0; j < i; ++j) {
      bool together = buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
      bool overlap = offsets[i] < offsets[j] + buffers[j].bytes && offsets[j] < offsets[i] + buffers[i].bytes;
      EXPECT_FALSE(together && overlap) << i << " and " << j;
    }
  }
}

TEST(Arena, BuffersAliveTogetherDoNotOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> buffers(random() % 30);
    for (Lifetime& b : buffers) {
      b.bytes = random() % 1000;
      b.first = random() % 20;
      b.last = b.first + random() % 6;
    }
    expect_apart(buffers);
  }
}

// The contract, word for word: each looks at all that were placed before it.
std::vector<size_t> lowest_places(const std::vector<Lifetime>& buffers) {
  std::vector<size_t> order(buffers.size()), offsets(buffers.size()), placed;
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  auto room = [&](size_t i) { return (buffers[i].bytes + 63) / 64 * 64; };
  for (size_t i : order) {
    auto free_at = [&](size_t at) {
      return std::none_of(placed.begin(), placed.end(), [&](size_t j) {
        bool together = buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
        return together && at < offsets[j] + room(j) && offsets[j] < at + room(i);
      });
    };
    size_t at = 0;
    while (!free_at(at)) at += 64;
    offsets[i] = at;
    placed.push_back(i);
  }
  return offsets;
}

TEST(Arena, EachLiesAtTheLowestPlaceThatIsFree) {
  std::mt19937 random(2);
  for (size_t longest : {3u, 40u, 400u}) {  // few alive at once, some, nearly all
    std::vector<Lifetime> buffers(300);
    for (Lifetime& b : buffers) {
      b.bytes = 1 + random() % 300;
      b.first = random() % 300;
      b.last = b.first + random() % longest;
    }
    size_t bytes = 0;
    EXPECT_EQ(plan_arena(buffers, bytes), lowest_places(buffers)) << longest;
  }
}

TEST(Arena, MemoryIsUsedAgain) {
  std::vector<Lifetime> chain;
  for (size_t i = 0; i < 100; ++i) chain.push_back({1024, i, i + 1});
  size_t bytes = 0;
  plan_arena(chain, bytes);
  EXPECT_LE(bytes, 2u * 1024);
}

TEST(Arena, NothingNeedsNothing) {
  size_t bytes = 1;
  EXPECT_TRUE(plan_arena({}, bytes).empty());
  EXPECT_EQ(bytes, 0u);
}

}  // namespace
}  // namespace tenon::interp

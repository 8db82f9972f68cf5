#include "tenon/base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace tenon::parallel {
namespace {

class WithThreads {
 public:
  explicit WithThreads(int count) : before_(threads()) { set_threads(count); }
  ~WithThreads() { set_threads(before_); }

 private:
  int before_;
};

TEST(Parallel, EveryItemIsVisitedOnce) {
  for (int count : {1, 2, 5}) {
    WithThreads with(count);
    for (std::int64_t items : {0, 1, 7, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<std::size_t>(items));
      parallel_for(items, 3, [&](std::int64_t lo, std::int64_t hi) {
        for (; lo < hi; ++lo) ++seen[static_cast<std::size_t>(lo)];
      });
      for (auto& times : seen) EXPECT_EQ(times, 1);
    }
  }
}

TEST(Parallel, RangesAreNoSmallerThanTheGrain) {
  WithThreads with(3);
  std::atomic<int> small{0};
  parallel_for(100, 30, [&](std::int64_t lo, std::int64_t hi) { small += hi - lo < 30 && hi != 100; });
  EXPECT_EQ(small, 0);
}

TEST(Parallel, WorkIsSharedBetweenThreads) {
  WithThreads with(2);
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  // Two ranges that wait for each other can only end on two threads.
  parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
    ++inside;
    for (int i = 0; i < 2000 && inside < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (inside == 2) met = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  EXPECT_TRUE(met);
}

TEST(Parallel, NestedLoopRunsOnItsCaller) {
  WithThreads with(2);
  std::atomic<int> elsewhere{0}, visited{0};
  parallel_for(8, 1, [&](std::int64_t lo, std::int64_t hi) {
    auto self = std::this_thread::get_id();
    for (; lo < hi; ++lo)
      parallel_for(10, 1, [&](std::int64_t a, std::int64_t b) {
        elsewhere += std::this_thread::get_id() != self;
        visited += static_cast<int>(b - a);
      });
  });
  EXPECT_EQ(elsewhere, 0);
  EXPECT_EQ(visited, 80);
}

TEST(Parallel, ExceptionReachesTheCallerAndTheNextLoopRuns) {
  WithThreads with(2);
  for (int bad : {0, 99}) {
    EXPECT_THROW(parallel_for(100, 1,
                              [&](std::int64_t lo, std::int64_t hi) {
                                if (lo <= bad && bad < hi) throw std::runtime_error("no");
                              }),
                 std::runtime_error);
    std::atomic<int> sum{0};
    parallel_for(100, 1, [&](std::int64_t lo, std::int64_t hi) { sum += static_cast<int>(hi - lo); });
    EXPECT_EQ(sum, 100);
  }
}

TEST(Parallel, TwoCallersAtOnceBothFinish) {
  WithThreads with(3);
  std::atomic<std::int64_t> sum{0};
  auto work = [&] {
    for (int i = 0; i < 500; ++i) parallel_for(64, 1, [&](std::int64_t lo, std::int64_t hi) { sum += hi - lo; });
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(sum, 2 * 500 * 64);
}

TEST(Parallel, NumberOfThreadsCanChangeBetweenLoops) {
  int before = threads();
  for (int count : {4, 1, 3, 2}) {
    set_threads(count);
    EXPECT_EQ(threads(), count);
    std::atomic<int> sum{0};
    parallel_for(50, 1, [&](std::int64_t lo, std::int64_t hi) { sum += static_cast<int>(hi - lo); });
    EXPECT_EQ(sum, 50);
  }
  set_threads(0);
  EXPECT_EQ(threads(), 1);
  set_threads(before);
}

}  // namespace
}  // namespace tenon::parallel

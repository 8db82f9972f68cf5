// When a program runs on one thread: what the times of its trials say.
#include "runtime/pace.h"

#include <gtest/gtest.h>

namespace tenon::package {
namespace {

/// A program that takes so many nanoseconds on all threads and alone; runs follow one another without a pause.
struct Runs {
  tn_pace pace = {};
  int64_t now = 1, together, alone;
  int runs_alone = 0;

  void run(int count) {
    for (int i = 0; i < count; ++i) {
      const bool wanted = tn_pace_wants(&pace);
      const int64_t from = now;
      runs_alone += pace.alone;
      now += pace.alone ? alone : together;
      if (wanted) tn_pace_took(&pace, from, now);
    }
  }
};

Runs after(int64_t together, int64_t alone, int runs) {
  Runs r{.together = together, .alone = alone};
  r.run(runs);
  r.runs_alone = 0;
  return r;
}

TEST(Pace, RunsAloneWhatASecondThreadDelays) {
  Runs r = after(3400, 2400, 200);
  r.run(1000);
  EXPECT_EQ(r.runs_alone, 1000);
}

TEST(Pace, RunsOnAllThreadsWhatTheyShorten) {
  Runs r = after(10400, 15700, 100);
  r.run(1000);
  EXPECT_EQ(r.runs_alone, 0);
}

TEST(Pace, NoticesWhenTheMachineChanges) {
  Runs r = after(20000, 15700, 100);
  EXPECT_TRUE(r.pace.alone);
  r.together = 10400;
  r.run(5000);
  EXPECT_FALSE(r.pace.alone);
  r.together = 20000;
  r.run(100000);
  EXPECT_TRUE(r.pace.alone);
}

TEST(Pace, NeverTriesLongProgramsAlone) {
  Runs r{.together = 120000, .alone = 1};
  r.run(20000);
  EXPECT_EQ(r.runs_alone, 0);
}

TEST(Pace, TrialsTakeAFewPercentOfTheTime) {
  Runs r = after(10000, 14000, 100);
  r.run(100000);
  EXPECT_GT(r.runs_alone, 0);
  EXPECT_LT(r.runs_alone, 1500);
}

TEST(Pace, OtherSizesBeginAnew) {
  Runs r = after(3400, 2400, 200);
  tn_pace_restart(&r.pace);
  EXPECT_FALSE(r.pace.alone);
}

}  // namespace
}  // namespace tenon::package

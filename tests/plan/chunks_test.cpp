#include "tenon/plan/chunks.h"

#include <gtest/gtest.h>

namespace tenon::plan {
namespace {

int64_t grain(int64_t extent, int64_t work, int64_t worth) {
  return fair_grain(SymInt(extent), SymInt(work), worth).as_int();
}

TEST(Chunks, TwoThreadsFindEqualHalves) {
  EXPECT_EQ(grain(14, 84672, 1 << 17), 7);  // two rows at a time would be eight for one thread, six for the other
  EXPECT_EQ(grain(56, 36288, 1 << 17), 4);
  EXPECT_EQ(grain(14, 23184, 1 << 17), 7);  // twelve and two would be no halves
  EXPECT_EQ(grain(49, 960, 1 << 14), 25);
}

TEST(Chunks, LittleWorkIsNotShared) {
  EXPECT_EQ(grain(10, 100, 1 << 14), 10);
  EXPECT_EQ(grain(0, 100, 1 << 14), 1);
}

TEST(Chunks, AreWorthAThread) {
  for (int64_t extent : {1, 5, 7, 30, 97, 1000})
    for (int64_t work : {1, 100, 9000, 100000}) {
      const int64_t some = grain(extent, work, 1 << 14);
      if (some < extent) {
        EXPECT_GE(2 * some * work, 1 << 14) << extent << " " << work;
        EXPECT_LE(some, 8 * ((1 << 14) / work + 1)) << extent << " " << work;
      }
    }
}

TEST(Chunks, SizesThatOnlyTheRunTells) {
  const SymInt n = SymInt::symbol("n");
  EXPECT_FALSE(fair_grain(n, n, 1 << 14).is_int());
}

}  // namespace
}  // namespace tenon::plan

#include "tenon/plan/chunks.h"

#include <gtest/gtest.h>

namespace tenon::plan {
namespace {

int64_t grain(int64_t extent, int64_t work, int64_t most) {
  return fair_grain(SymInt(extent), SymInt(work), most).as_int();
}

TEST(Chunks, TwoThreadsFindEqualHalves) {
  EXPECT_EQ(grain(14, 84672, 1 << 20), 7);  // four rows at a time would be eight for one thread, six for the other
  EXPECT_EQ(grain(56, 36288, 1 << 20), 7);
  EXPECT_EQ(grain(49, 960, 1 << 15), 25);
}

TEST(Chunks, LittleWorkIsNotShared) {
  EXPECT_EQ(grain(10, 100, 1 << 15), 10);
  EXPECT_EQ(grain(0, 100, 1 << 15), 1);
}

TEST(Chunks, AChunkDoesAtMostWhatIsAsked) {
  for (int64_t extent : {1, 5, 7, 30, 97, 1000})
    for (int64_t work : {1, 100, 9000, 100000}) {
      EXPECT_LE(grain(extent, work, 1 << 15), std::max<int64_t>((1 << 15) / work, 1)) << extent << " " << work;
      EXPECT_GE(grain(extent, work, 1 << 15), 1);
    }
}

TEST(Chunks, SizesThatOnlyTheRunTells) {
  const SymInt n = SymInt::symbol("n");
  EXPECT_FALSE(fair_grain(n, n, 1 << 15).is_int());
}

}  // namespace
}  // namespace tenon::plan

#include "tenon/base/budget.h"

#include <gtest/gtest.h>

#include "tenon/base/copy_on_write.h"
#include "tenon/base/error.h"

namespace tenon {
namespace {

constexpr BudgetLimits small{.bytes = 100, .bytes_per_byte = 2, .values = 10, .weight = 5, .weight_per_byte = 1};

TEST(Budget, GivesUpToItsLimitAndNotOneMore) {
  Budget budget("m.pt2", 50, small);
  budget.take_bytes(150, "JSON");
  budget.take_bytes(50, "a pickle");
  EXPECT_THROW(budget.take_bytes(1, "a pickle"), Error);
  budget.take_values(10, "JSON");
  EXPECT_THROW(budget.take_values(1, "JSON"), Error);
  budget.take_weight(55, "sizes");
  EXPECT_THROW(budget.take_weight(1, "sizes"), Error);
}

TEST(Budget, WhatIsRefusedIsNotTaken) {
  Budget budget("m.pt2", 0, small);
  EXPECT_THROW(budget.take_bytes(UINT64_MAX, "JSON"), Error);
  budget.take_bytes(100, "JSON");
  EXPECT_EQ(budget.bytes_taken(), 100u);
}

TEST(Budget, SaysWhatOfWhichFileTookHowMuch) {
  Budget budget("m.pt2", 0, small);
  try {
    budget.take_bytes(101, "deflated entries");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "m.pt2: reading deflated entries takes more bytes than a file of its size may take");
  }
}

TEST(Budget, OfAnEnormousFileDoesNotWrapAround) {
  Budget budget("m.pt2", UINT64_MAX / 3);
  EXPECT_EQ(budget.bytes_limit(), UINT64_MAX);
}

TEST(CopyOnWrite, CopiesShareUntilOneIsChanged) {
  CopyOnWrite<std::string> a;
  EXPECT_EQ(*a, "");
  a.edit() = "x";
  CopyOnWrite<std::string> b = a;
  EXPECT_EQ(&*a, &*b);
  b.edit() += "y";
  EXPECT_EQ(*a, "x");
  EXPECT_EQ(*b, "xy");
}

TEST(CopyOnWrite, OneMovedFromIsEmpty) {
  CopyOnWrite<std::string> a;
  a.edit() = "x";
  CopyOnWrite<std::string> b = std::move(a);
  EXPECT_EQ(*a, "");
  a.edit() = "z";
  EXPECT_EQ(*b, "x");
}

}  // namespace
}  // namespace tenon

#include "tenon/sym/range.h"

#include <gtest/gtest.h>

#include "tenon/sym/parse.h"

namespace tenon::sym {
namespace {

const Expr s0 = Expr::symbol("s0", {.positive = true}), s1 = Expr::symbol("s1", {.positive = true}),
           u0 = Expr::symbol("u0");
constexpr int64_t oo = Range::infinity, minus_oo = Range::minus_infinity;

Ranges with(Expr symbol, Range r) {
  Ranges out;
  out.set(symbol, r);
  return out;
}

TEST(Range, FollowsArithmetic) {
  Ranges r = with(u0, {2, 10});
  EXPECT_EQ(range_of(u0 * 3 + 1, r), (Range{7, 31}));
  EXPECT_EQ(range_of(-u0, r), (Range{-10, -2}));
  EXPECT_EQ(range_of(floor_div(u0, 3), r), (Range{0, 3}));
  EXPECT_EQ(range_of(floor_div(Expr(7), u0), r), (Range{0, 3}));
  EXPECT_EQ(range_of(mod(u0, 4), r), (Range{0, 3}));
  EXPECT_EQ(range_of(mod(u0, 100), r), (Range{2, 10}));
  EXPECT_EQ(range_of(mod(u0, -4), r), (Range{-3, 0}));
  EXPECT_EQ(range_of(max(u0, 5), r), (Range{5, 10}));
  EXPECT_EQ(range_of(u0 * u0, with(u0, {-3, 2})), (Range{0, 9}));
}

TEST(Range, StopsAtInfinity) {
  EXPECT_EQ(range_of(s0 * 4 - 1), (Range{-1, oo}));
  EXPECT_EQ(range_of(u0), Range());
  EXPECT_EQ(range_of(-s0), (Range{minus_oo, 0}));
  EXPECT_EQ(range_of(u0 * u0, with(u0, {0, int64_t{1} << 40})), (Range{0, oo}));
  EXPECT_EQ(range_of(s0 - s1), Range());
  EXPECT_EQ(range_of(u0 * 0 + 3), (Range{3, 3}));
  EXPECT_EQ(range_of(floor_div(s0, s1)), (Range{0, oo}));
}

TEST(Range, TheGreatestIntegerIsANumber) {
  EXPECT_LE(range_of(floor_div(Expr(oo), u0), with(u0, {1, 3})).lo, oo / 3);
  EXPECT_LE(range_of(mod(Expr(oo), u0) + Expr(oo), with(u0, {5, 9})).lo, oo - 1);
}

TEST(Range, OfADivisionByAFraction) {
  Range of = range_of(parse("IntTrueDiv(u0, 0.5)"), with(Expr::symbol("u0"), {4, 6}));
  EXPECT_TRUE(of.contains(8) && of.contains(12));
}

TEST(Range, ConditionsNarrowTheValuesOfTheirCases) {
  Ranges r = with(u0, {-4, 3});
  Expr from_the_end = where(lt(u0, 0), u0 + 4, u0);
  EXPECT_EQ(range_of(from_the_end, r), (Range{0, 3}));
  EXPECT_EQ(decide(lt(from_the_end, 0), r), false);
  EXPECT_EQ(range_of(where(lt(u0, 0), Expr(7), u0), r), (Range{0, 7}));
  EXPECT_EQ(range_of(where(gt(u0, 3), Expr(100), u0), r), (Range{-4, 3}));  // the first case cannot be
  EXPECT_EQ(range_of(where(lt(s0, 5), u0, s0), r), (Range{-4, oo}));
  EXPECT_EQ(range_of(where(ge(u0 + 1, 0), u0, -u0), r), (Range{-1, 4}));
}

TEST(Range, SymbolsAreFoundByName) { EXPECT_EQ(range_of(Expr::symbol("s0"), with(s0, {2, 8})), (Range{2, 8})); }

TEST(Decide, ByFormAndByRange) {
  EXPECT_EQ(decide(gt(u0 + 1, u0)), true);
  EXPECT_EQ(decide(ge(s0, 0)), true);
  EXPECT_EQ(decide(eq(s0, 0)), std::nullopt);
  EXPECT_EQ(decide(ne(s0, 0), with(s0, {2, oo})), true);
  EXPECT_EQ(decide(eq(s0, 1), with(s0, {2, oo})), false);
  EXPECT_EQ(decide(lt(u0, 10), with(u0, {0, 9})), true);
  EXPECT_EQ(decide(le(u0 * 2, u0 + 5), with(u0, {0, 5})), true);  // the difference is u0 - 5
  EXPECT_EQ(decide(lt(u0, 5), with(u0, {0, 9})), std::nullopt);
  EXPECT_EQ(decide(eq(mod(u0, 4), 7)), false);
  EXPECT_EQ(decide(eq(u0, 3), with(u0, {3, 3})), true);
}

TEST(Decide, JunctionsNeedOnlyWhatSettlesThem) {
  Ranges r = with(u0, {2, 9});
  EXPECT_EQ(decide(logical_and(gt(s0, 4), gt(u0, 9)), r), false);
  EXPECT_EQ(decide(logical_or(gt(s0, 4), gt(u0, 1)), r), true);
  EXPECT_EQ(decide(logical_and(gt(s0, 4), gt(u0, 1)), r), std::nullopt);
}

TEST(Decide, NestedConditionsCostNoMoreThanTheirSize) {
  std::string text = "u0 > 3";
  for (int i = 0; i < 60; i++) text = "Eq(" + text + ", u0 > " + std::to_string(i + 4) + ")";
  EXPECT_EQ(decide(parse(text)), std::nullopt);
}

TEST(Decide, DoublesBeyondTheirExactIntegersAreLeftOpen) {
  int64_t edge = (int64_t{1} << 53) + 1;
  EXPECT_EQ(decide(le(to_float(u0), Expr(edge)), with(u0, {0, edge})), std::nullopt);
  EXPECT_EQ(decide(le(to_float(u0), Expr(10)), with(u0, {0, 10})), true);
}

}  // namespace
}  // namespace tenon::sym

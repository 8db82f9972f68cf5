#include "tenon/sym/expr.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tenon/base/error.h"
#include "tenon/sym/exact.h"
#include "tenon/sym/node.h"
#include "tenon/sym/print.h"

namespace tenon::sym {
namespace {

const SymbolTraits size_traits{.positive = true};
const Expr s0 = Expr::symbol("s0", size_traits), s1 = Expr::symbol("s1", size_traits), u0 = Expr::symbol("u0");
constexpr int64_t low = INT64_MIN, high = INT64_MAX;

TEST(Expr, PlainIntegersStayPlain) {
  Expr a = 6, b = -4;
  EXPECT_EQ((a + b).as_int(), 2);
  EXPECT_EQ((a * b).as_int(), -24);
  EXPECT_EQ(floor_div(a, b).as_int(), -2);
  EXPECT_EQ(mod(a, b).as_int(), -2);
  EXPECT_EQ(max(a, b), a);
  EXPECT_TRUE(Expr().is_int());
  EXPECT_EQ(Expr(), Expr(0));
}

TEST(Expr, TheWholeRangeOfInt64IsHeld) {
  for (int64_t v : {low, low + 1, high, high - 1, int64_t{1} << 62, -(int64_t{1} << 62), (int64_t{1} << 62) - 1}) {
    EXPECT_TRUE(Expr(v).is_int());
    EXPECT_EQ(Expr(v).as_int(), v);
    EXPECT_EQ(Expr(v), Expr(v));
  }
  EXPECT_EQ(Expr(high - 1) + 1, Expr(high));
  EXPECT_EQ(Expr(int64_t{1} << 61) + Expr(int64_t{1} << 61), Expr(int64_t{1} << 62));
}

TEST(Expr, OverflowAndDivisionByZeroAreErrors) {
  EXPECT_THROW(Expr(high) + 1, Error);
  EXPECT_THROW(Expr(low) - 1, Error);
  EXPECT_THROW(-Expr(low), Error);
  EXPECT_THROW(Expr(high) * 2, Error);
  EXPECT_THROW(floor_div(Expr(low), -1), Error);
  EXPECT_EQ(mod(Expr(low), -1), Expr(0));
  EXPECT_THROW(floor_div(Expr(3), 0), Error);
  EXPECT_THROW(mod(s0, 0), Error);
  EXPECT_THROW((s0 * high) * 2, Error);
  EXPECT_THROW(Expr(uint64_t{1} << 63), Error);
}

TEST(Expr, EqualExpressionsAreOneWordHoweverTheyWereMade) {
  EXPECT_EQ(s0 + s1, s1 + s0);
  EXPECT_EQ(s0 + s0, s0 * 2);
  EXPECT_EQ((s0 + 1) * (s0 - 1), s0 * s0 - 1);
  EXPECT_EQ(s0 * s1 * s0, pow(s0, 2) * s1);
  EXPECT_EQ(s0 - s0, Expr(0));
  EXPECT_FALSE(s0 == s1);
  EXPECT_FALSE(Expr::symbol("s0") == s0);  // another symbol: other traits
}

TEST(Expr, ARealTermThatCancelsIsTheNumberZeroAmongTheOthers) {
  Expr half = Expr::real(0.5);
  EXPECT_EQ(half * s0 - half * s0, Expr::real(0));
  EXPECT_EQ(half * s0 - half * s0, Expr::real(0) * s0);
  EXPECT_EQ(s1 + half * s0 - half * s0 + 3, s1 + Expr::real(3));
}

TEST(Expr, OrderDependsOnNamesOnly) {
  Expr b = Expr::symbol("order_b"), a = Expr::symbol("order_a");  // made in the other order
  EXPECT_EQ(to_infix(b + a * 2 + 1), "2*order_a + order_b + 1");
  EXPECT_EQ(to_infix(max(b, a)), "Max(order_a, order_b)");
}

TEST(Expr, DivisionTakesOutWhatDivides) {
  EXPECT_EQ(floor_div(s0 * 4, 2), s0 * 2);
  EXPECT_EQ(mod(s0 * 4, 2), Expr(0));
  EXPECT_EQ(floor_div(s0 * s1, s0), s1);
  EXPECT_EQ(floor_div(s0 * s1 + s0, s1 + 1), s0);
  EXPECT_EQ(mod(s0 * s1 + s0, s1 + 1), Expr(0));
  EXPECT_EQ(to_infix(floor_div(s0 * 4 + s1, 2)), "2*s0 + ((s1//2))");
  EXPECT_EQ(to_infix(floor_div(s0 * 2, 6)), "(s0//3)");
  EXPECT_EQ(to_infix(floor_div(floor_div(s0, 2), 3)), "(s0//6)");
  EXPECT_EQ(to_infix(floor_div(s0, s1)), "(s0//s1)");
  EXPECT_EQ(to_infix(mod(s0 * 5 + 7, 3)), "Mod(2*s0 + 1, 3)");
  EXPECT_EQ(mod(mod(s0, 3), 3), mod(s0, 3));
}

TEST(Expr, ExtremesAreFlatUniqueAndWithoutLosers) {
  EXPECT_EQ(to_infix(max(max(s0, 3), max(s1, s0))), "Max(3, s0, s1)");
  EXPECT_EQ(max(s0, s0 + 1), s0 + 1);
  EXPECT_EQ(min(s0, s0 + 1), s0);
  EXPECT_EQ(max(s0, 0), s0);
  EXPECT_EQ(min(s0, 0), Expr(0));
  EXPECT_EQ(max(s0, s0), s0);
}

TEST(Expr, ConditionsFoldWhereCertain) {
  Expr yes = Expr::boolean(true), no = Expr::boolean(false);
  EXPECT_EQ(gt(s0 + 1, s0), yes);
  EXPECT_EQ(eq(s0 * 2, s0 + s0), yes);
  EXPECT_EQ(ge(s0, 0), yes);
  EXPECT_EQ(lt(s0 + 1, 0), no);
  EXPECT_EQ(ne(s0 + 1, 0), yes);
  EXPECT_EQ(to_infix(eq(s0, 0)), "Eq(s0, 0)");  // a size may be 0
  EXPECT_EQ(logical_not(lt(u0, 4)), ge(u0, 4));
  EXPECT_EQ(logical_and(yes, lt(u0, 4)), lt(u0, 4));
  EXPECT_EQ(logical_or(yes, lt(u0, 4)), yes);
}

TEST(Expr, ProductsOfManySumsStaySmall) {
  Expr p = 1;
  for (int i = 0; i < 40; i++) p = p * (Expr::symbol("x" + std::to_string(i)) + Expr::symbol("y" + std::to_string(i)));
  EXPECT_LT(to_infix(p).size(), 20'000u);
  Expr q = s0 + s1;
  EXPECT_EQ(pow(q, 2), q * q);
  EXPECT_LT(to_infix(pow(q, 1'000'000)).size(), 100u);
}

TEST(Expr, AProductLeftAloneIsNotCopiedIntoEveryTerm) {
  Expr e = u0;
  for (int i = 0; i < 190; i++) e = (e + Expr::symbol(text("v", i))) * (Expr::symbol(text("w", i)) + 1);
  EXPECT_LT(to_infix(e).size(), 100'000u);
}

TEST(Expr, DivisionThatDoesNotSimplifyIsKeptEvenWhereTryingWouldOverflow) {
  Expr b = s1 * (high / 2) + u0;
  EXPECT_EQ(floor_div(s1 * s0 * (high / 2) + u0 * high, b).kind(), Kind::floor_div);
  EXPECT_EQ(max(s0 * high, s0 * -high + low).kind(), Kind::max);
}

TEST(Expr, AnExpressionThatDoublesEachStepIsRefused) {
  Expr e = s0;
  EXPECT_THROW(
      {
        for (int i = 0; i < 100; i++) e = max(mod(e, s1 + i), floor_div(e, s1 + i));
      },
      Error);
}

TEST(Print, InfixReadsAsSympysStr) {
  EXPECT_EQ(to_infix(s0 * 2 + 1), "2*s0 + 1");
  EXPECT_EQ(to_infix(s0 * s1 + s0 + s1 * s1 + 3), "s0*s1 + s0 + s1**2 + 3");
  EXPECT_EQ(to_infix(-s0 + s1 - 1), "-s0 + s1 - 1");
  EXPECT_EQ(to_infix(Expr(2) - s0), "2 - s0");
  EXPECT_EQ(to_infix(mod(u0, 2)), "PythonMod(u0, 2)");
  EXPECT_EQ(to_infix(max(Expr(1), u0)), "Max(1, u0)");
  EXPECT_EQ(to_infix(le(s0, 4)), "s0 <= 4");
  EXPECT_EQ(to_infix(logical_and(gt(s0, 4), lt(s1, 3))), "(s0 > 4) & (s1 < 3)");
  EXPECT_EQ(to_infix(s0 * Expr::rational(-3, 2)), "-3*s0/2");
  EXPECT_EQ(to_infix(pow(s0 + s1, 10)), "(s0 + s1)**10");
  EXPECT_EQ(to_infix(pow(floor_div(s0, 2), 2)), "((s0//2))**2");
  EXPECT_EQ(to_infix(lt(floor_div(s0, 2), 4)), "((s0//2)) < 4");
}

TEST(Print, SreprReadsAsSympysSrepr) {
  EXPECT_EQ(to_srepr(s0 * 2 + 1), "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))");
  EXPECT_EQ(to_srepr(lt(u0, 4)), "StrictLessThan(Symbol('u0', integer=True), Integer(4))");
  EXPECT_EQ(to_srepr(Expr::real(1.5)), "Float('1.5', precision=53)");
  EXPECT_EQ(to_srepr(u0 * -2), "Mul(Integer(-1), Integer(2), Symbol('u0', integer=True))");
  EXPECT_EQ(to_srepr(Expr::symbol("zuf0", {.integer = false})), "Symbol('zuf0')");
}

TEST(Expr, NodesGoWithTheLastExpressionThatHoldsThem) {
  size_t before = interned_nodes();
  {
    Expr x = Expr::symbol("of this test alone"), sum = 3 * x + 1, copy = sum;
    EXPECT_GE(interned_nodes(), before + 3);
    sum = 0;
    x = 0;
    EXPECT_EQ(interned_nodes(), before + 3);  // the copy holds all of them
    EXPECT_EQ(text(copy), "3*of this test alone + 1");
    Expr moved = std::move(copy);
    EXPECT_EQ(moved.args().size(), 2u);
    moved = moved.args()[0];  // a part of what it held
    EXPECT_EQ(text(moved), "3*of this test alone");
  }
  EXPECT_EQ(interned_nodes(), before);
}

TEST(Expr, ThreadsFindAndDropTheSameNodes) {
  size_t before = interned_nodes();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) {
        Expr x = Expr::symbol(text("shared", i % 3), size_traits);
        Expr a = x * x + i % 5, b = i % 5 + x * x;
        if (!(a == b)) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(interned_nodes(), before);
}

TEST(Expr, ADifferenceBeyond64BitsIsNoneAndNotAnError) {
  EXPECT_FALSE(difference(s0 * high, s0 * -2));
  EXPECT_FALSE(difference(high, -1));
  EXPECT_FALSE(difference(0, low * s0));
  EXPECT_EQ(difference(s0 * high, s0 * 2), s0 * (high - 2));
  EXPECT_EQ(difference(s0 + s1, s1 + s0), Expr(0));
}

TEST(Exact, OfSizesThatAreMultiplesOfEachOtherTheSmallestAndTheLargestAreKnown) {
  EXPECT_TRUE(equal_if_exact(min(s0, s0 * s1), s0));  // as the strides that PyTorch's views have
  EXPECT_TRUE(equal_if_exact(min(Expr(1), min(s0, s0 * s1)), 1));
  EXPECT_TRUE(equal_if_exact(max(s0 * 2, max(s0, Expr(1))), s0 * 2));
  EXPECT_FALSE(equal_if_exact(min(s0, s1), s0));
  EXPECT_FALSE(equal_if_exact(min(u0, u0 * s0), u0));  // it may be below 0
}

TEST(Expr, AQuotientWhoseStepsLeave64BitsIsNone) {
  EXPECT_FALSE(exact_quotient(s0 * high + s1, s0 + s1 * 4));
  EXPECT_EQ(exact_quotient(s0 * s1 * 6 + s0 * 4, s0 * 2), s1 * 3 + 2);
}

}  // namespace
}  // namespace tenon::sym

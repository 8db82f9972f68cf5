#include "tenon/sym/evaluate.h"

#include <gtest/gtest.h>

#include "tenon/base/error.h"
#include "tenon/sym/parse.h"
#include "tenon/sym/print.h"
#include "tenon/sym/shape_env.h"

namespace tenon::sym {
namespace {

const Expr s0 = Expr::symbol("s0", {.positive = true}), s1 = Expr::symbol("s1", {.positive = true}),
           u0 = Expr::symbol("u0"), v = Expr::symbol("v");

TEST(Evaluate, UsesTheBindings) {
  EXPECT_EQ(evaluate(s0 * 2 + s1, {{s0, 3}, {s1, 4}}), 10);
  EXPECT_EQ(evaluate(mod(u0, 3), {{u0, -1}}), 2);
  EXPECT_TRUE(evaluate_bool(lt(u0, 3), {{u0, -1}}));
  EXPECT_DOUBLE_EQ(evaluate_real(true_div(s0, s1), {{s0, 1}, {s1, 4}}), 0.25);
  EXPECT_EQ(evaluate(parse("s0*(s0 + 1)/2"), {{s0, 3}}), 6);
}

TEST(Evaluate, AnUnboundSymbolIsNamed) {
  try {
    evaluate(s0 + u0, {{s0, 3}});
    FAIL();
  } catch (const Error& e) { EXPECT_EQ(std::string(e.what()), "the symbol 'u0' has no value"); }
}

TEST(Evaluate, OnlyTheChosenBranchIsLookedAt) {
  Expr e = where(ne(u0, 0), floor_div(Expr(6), u0), 0);
  EXPECT_EQ(evaluate(e, {{u0, 0}}), 0);
  EXPECT_EQ(evaluate(e, {{u0, 2}}), 3);
}

TEST(Evaluate, OverflowIsAnError) { EXPECT_THROW(evaluate(s0 * s0, {{s0, int64_t{1} << 40}}), Error); }

TEST(Evaluate, ANumberThatIsNotWholeIsNoInteger) { EXPECT_THROW(evaluate(true_div(s0, 2), {{s0, 3}}), Error); }

TEST(Substitute, ReplacesAllAtOnceAndSimplifies) {
  Replacement swap[] = {{s0, s1}, {s1, s0}};
  EXPECT_EQ(substitute(s0 * 2 + s1, swap), s1 * 2 + s0);
  Replacement four[] = {{s0, Expr(4)}};
  EXPECT_EQ(substitute(floor_div(s0 + s1, 2), four), floor_div(s1, 2) + 2);
}

TEST(Symbols, AreListedOnceByName) { EXPECT_EQ(symbols_of(s1 * s0 + max(s0, u0)), (std::vector<Expr>{s0, s1, u0})); }

TEST(Solve, ALinearExpressionGivesValueAndCondition) {
  auto s = solve(s0 * 2 + 1, v, s0);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->value, floor_div(v - 1, 2));
  EXPECT_EQ(s->condition, eq(mod(v - 1, 2), 0));
  EXPECT_TRUE(s->unique);
  EXPECT_EQ(solve(s0 + s1 * 3, v, s0)->value, v - s1 * 3);
  EXPECT_EQ(solve(s0 * 2, 8, s0)->value, Expr(4));
  EXPECT_EQ(solve(s0 * 2, 7, s0)->condition, Expr::boolean(false));
  EXPECT_EQ(solve(s0 * s1 + s0, v, s0)->value, floor_div(v, s1 + 1));
}

TEST(Solve, AFloorDivisionHasOneOfItsSolutions) {
  auto s = solve(floor_div(s0 + 1, 4), v, s0);
  ASSERT_TRUE(s);
  EXPECT_EQ(s->value, v * 4 - 1);
  EXPECT_FALSE(s->unique);
}

TEST(Solve, WhatCannotBeIsolatedHasNoSolution) {
  EXPECT_FALSE(solve(s0 * s0, v, s0));
  EXPECT_FALSE(solve(s1, v, s0));
  EXPECT_FALSE(solve(max(s0, 3), v, s0));
  EXPECT_FALSE(solve(s0 * 2, s0 + 1, s0));
}

TEST(ShapeEnv, DerivedConstraintsNarrowTheirSymbol) {
  ShapeEnv env;
  env.constrain(s0 * 2, {4, 9});
  EXPECT_EQ(env.range_of(s0), (Range{2, 4}));
  env.constrain(s1 * -1 + 3, {-5, 2});
  EXPECT_EQ(env.range_of(s1), (Range{1, 8}));
  env.constrain(s0 * s1, {6, 20});
  EXPECT_EQ(env.decide(ge(s0 * s1, 6)), true);
}

TEST(ShapeEnv, FreshSymbolsAvoidThoseThatAreThere) {
  ShapeEnv env;
  env.constrain(Expr::symbol("u3"), {0, 5});
  EXPECT_EQ(to_infix(env.fresh_unbacked()), "u4");
  EXPECT_EQ(to_infix(env.fresh_unbacked({0, 7})), "u5");
  EXPECT_EQ(env.range_of(Expr::symbol("u5")), (Range{0, 7}));
}

TEST(ShapeEnv, GuardsAreKeptWhereUndecidedAndThenKnown) {
  ShapeEnv env;
  env.guard(eq(s0, s1), "x, dimension 0", "the sizes of add must match");
  EXPECT_EQ(env.guards.size(), 1u);
  EXPECT_EQ(env.decide(eq(s0, s1)), true);
  EXPECT_EQ(env.decide(ne(s0, s1)), false);
  env.guard(eq(s0, s1), "x, dimension 0", "again");
  env.guard(ge(s0, 0), "", "certain");
  EXPECT_EQ(env.guards.size(), 1u);
  EXPECT_THROW(env.guard(lt(s0, 0), "x, dimension 0", "impossible"), Error);
}

}  // namespace
}  // namespace tenon::sym

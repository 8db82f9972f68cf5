#include "tenon/loop/expr.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tenon/base/error.h"

namespace tenon::loop {
namespace {

Expr load(Arena& arena, BufferId buffer, Compute type = Compute::f32) {
  return {&arena, arena.add({.fn = Fn::load, .type = type, .buffer = buffer})};
}

TEST(Arena, EqualNodesAreOne) {
  Arena arena;
  Expr x = load(arena, 0);
  Expr a = exp(x) + 1.0, b = exp(x) + 1.0;
  EXPECT_EQ(a.id, b.id);
  size_t before = arena.size();
  exp(load(arena, 0));
  EXPECT_EQ(arena.size(), before);
}

TEST(Arena, NodesThatDifferInOneFieldAreTwo) {
  Arena arena;
  EXPECT_NE(load(arena, 0).id, load(arena, 1).id);
  EXPECT_NE(load(arena, 0, Compute::f32).id, load(arena, 0, Compute::f64).id);
  EXPECT_NE(constant(arena, 1.0, Compute::f32).id, constant(arena, 2.0, Compute::f32).id);
  ExprId guard = (load(arena, 0) > 0.0).id;
  EXPECT_NE(arena.add({.fn = Fn::load, .buffer = 0, .guard = guard}), load(arena, 0).id);
}

TEST(Arena, IdsStayGoodWhileItGrows) {
  Arena arena;
  Expr x = load(arena, 7);
  Expr sum = x;
  for (int i = 0; i < 1000; ++i) sum = sum + static_cast<double>(i);
  EXPECT_EQ(arena[x.id].buffer, 7u);
  EXPECT_GT(arena.size(), 1000u);
}

TEST(ScalarExpr, ANumberTakesTheTypeOfTheExpressionItMeets) {
  Arena arena;
  EXPECT_EQ((load(arena, 0, Compute::f64) * 2).type(), Compute::f64);
  EXPECT_EQ((1 + load(arena, 0, Compute::i64)).type(), Compute::i64);
  EXPECT_EQ((load(arena, 0) < 2.0).type(), Compute::boolean);
}

TEST(ScalarExpr, SelectHasTheTypeOfItsBranches) {
  Arena arena;
  Expr x = load(arena, 0, Compute::f64);
  EXPECT_EQ(select(x > 0.0, x, 0.0).type(), Compute::f64);
}

TEST(ScalarExpr, SmallFloatsComputeInSinglePrecisionAndSmallIntegersIn64Bits) {
  EXPECT_EQ(compute_of(DType::f16), Compute::f32);
  EXPECT_EQ(compute_of(DType::bf16), Compute::f32);
  EXPECT_EQ(compute_of(DType::u8), Compute::i64);
  EXPECT_EQ(compute_of(DType::boolean), Compute::boolean);
  EXPECT_EQ(compute_of(DType::f64), Compute::f64);
}

TEST(ScalarExpr, EveryFunctionHasANameOfItsOwn) {
  std::vector<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Fn::random_bits); ++i) names.push_back(name(static_cast<Fn>(i)));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_FALSE(names.front().empty());
}

}  // namespace
}  // namespace tenon::loop

// Which buffers a step reads and writes, and what verify refuses.
#include <gtest/gtest.h>

#include <set>

#include "tenon/base/error.h"
#include "tests/loop/small_program.h"

namespace tenon::loop {
namespace {

std::set<BufferId> reads(const Program& p, const Step& step) {
  std::set<BufferId> out;
  for_each_read(p, step, [&](BufferId b) { out.insert(b); });
  return out;
}
std::set<BufferId> writes(const Program& p, const Step& step) {
  std::set<BufferId> out;
  for_each_write(p, step, [&](BufferId b) { out.insert(b); });
  return out;
}
using Buffers = std::set<BufferId>;

TEST(Access, AStageReadsWhatItLoadsAndWritesWhatItStores) {
  SmallProgram s;
  EXPECT_EQ(reads(s.program, s.program.steps[0]), (Buffers{s.x, s.w}));
  EXPECT_EQ(writes(s.program, s.program.steps[0]), Buffers{s.sum});
}

TEST(Access, AGemmReadsItsResultOnlyWhereItAddsToIt) {
  SmallProgram s;
  EXPECT_EQ(reads(s.program, s.program.steps[1]), (Buffers{s.sum, s.x}));
  std::get<Gemm>(s.program.steps[1]).beta = 1;
  EXPECT_EQ(reads(s.program, s.program.steps[1]), (Buffers{s.sum, s.x, s.out}));
  EXPECT_EQ(writes(s.program, s.program.steps[1]), Buffers{s.out});
}

TEST(Access, AStoreThatAddsReadsWhatIsThere) {
  SmallProgram s;
  std::get<Stage>(s.program.steps[0]).stores[0].mode = Mode::add;
  EXPECT_EQ(reads(s.program, s.program.steps[0]), (Buffers{s.x, s.w, s.sum}));
}

TEST(Access, LoadsInConditionsAndIndicesCount) {
  SmallProgram s;
  Stage& stage = std::get<Stage>(s.program.steps[0]);
  BufferId mask = s.buffer("mask", {2, 3}, Role::input), other = s.buffer("other", {2, 3}, Role::input);
  ExprId i = s.index(0), j = s.index(1);
  stage.stores[0].where = (Expr(&s.program.arena, s.load(mask, {i, j})) > 0.0).id;
  ExprId guard = (Expr(&s.program.arena, s.load(other, {i, j})) > 0.0).id;
  stage.stores[0].value = s.load(s.x, {i, j}, guard);
  EXPECT_EQ(reads(s.program, s.program.steps[0]), (Buffers{s.x, mask, other}));
}

TEST(Access, ACallReadsItsTensorsAndWritesItsResults) {
  SmallProgram s;
  Step call = Call{.name = "aten::nonzero", .args = {BufferRef{s.x}, 3, BufferRef{}}, .results = {BufferRef{s.out}}};
  EXPECT_EQ(reads(s.program, call), Buffers{s.x});
  EXPECT_EQ(writes(s.program, call), Buffers{s.out});
}

TEST(Access, ABindAndACheckReadTheirTensorAndWriteNothing) {
  SmallProgram s;
  EXPECT_EQ(reads(s.program, Bind{.symbol = SymInt::symbol("u0"), .from = s.x, .dim = -1}), Buffers{s.x});
  EXPECT_EQ(reads(s.program, Check{.tensor = s.w}), Buffers{s.w});
  EXPECT_EQ(reads(s.program, Check{.condition = SymInt::boolean(true)}), Buffers{});
  EXPECT_EQ(writes(s.program, Check{.tensor = s.w}), Buffers{});
}

TEST(Access, AControlStepReadsAndWritesWhatItsBodiesDo) {
  SmallProgram s;
  Control control{.kind = Control::Kind::choose, .value = SymInt::symbol("u0"), .bodies = {}};
  control.bodies.push_back({{s.program.steps[0]}, {0}});
  control.bodies.push_back({{s.program.steps[1]}, {1}});
  Control outer{.kind = Control::Kind::counted, .value = 2, .symbol = SymInt::symbol("u1"), .bodies = {}};
  outer.bodies.push_back({{Step(control)}, {0}});
  EXPECT_EQ(reads(s.program, outer), (Buffers{s.x, s.w, s.sum}));
  EXPECT_EQ(writes(s.program, outer), (Buffers{s.sum, s.out}));
}

TEST(Access, SizesOfAStepAreItsExtentsAndTheNumbersInItsFormulas) {
  SmallProgram s;
  SymInt n = SymInt::symbol("s0"), m = SymInt::symbol("s1");
  Stage& stage = std::get<Stage>(s.program.steps[0]);
  stage.domain = {n, 3};
  stage.stores[0].value = cast(size_expr(s.program.arena, m + 1), Compute::f32).id;
  std::vector<SymInt> found;
  for_each_size(s.program, s.program.steps[0], [&](SymInt e) { found.push_back(e); });
  EXPECT_EQ(found, (std::vector<SymInt>{n, 3, m + 1}));
}

TEST(Verify, AGoodProgramPasses) {
  SmallProgram s;
  EXPECT_NO_THROW(verify(s.program));
}

TEST(Verify, ALoadHasAnIndexPerDimension) {
  SmallProgram s;
  std::get<Stage>(s.program.steps[0]).stores[0].value = s.load(s.x, {s.index(0)});
  EXPECT_THROW(verify(s.program), InternalError);
}

TEST(Verify, AStoreHasAnIndexPerDimension) {
  SmallProgram s;
  std::get<Stage>(s.program.steps[0]).stores[0].at.pop_back();
  EXPECT_THROW(verify(s.program), InternalError);
}

TEST(Verify, ABufferThatIsNotThereIsRefused) {
  SmallProgram s;
  std::get<Stage>(s.program.steps[0]).stores[0].to = 99;
  EXPECT_THROW(verify(s.program), InternalError);
}

TEST(Verify, ControlStepsHaveTheBodiesOfTheirKind) {
  SmallProgram s;
  Control control{.kind = Control::Kind::repeat, .value = SymInt::symbol("u0"), .bodies = {}};
  control.bodies.push_back({{s.program.steps[0]}, {0}});
  s.program.steps.emplace_back(control);
  EXPECT_THROW(verify(s.program), InternalError);
  control.bodies.push_back({{s.program.steps[1]}, {1}});
  s.program.steps.back() = control;
  EXPECT_NO_THROW(verify(s.program));
  control.bodies[1].nodes.clear();
  s.program.steps.back() = control;
  EXPECT_THROW(verify(s.program), InternalError);
}

TEST(Verify, WhatIsWrongInABodyIsFound) {
  SmallProgram s;
  Control control{.kind = Control::Kind::counted, .value = 2, .symbol = SymInt::symbol("u0"), .bodies = {}};
  std::get<Stage>(s.program.steps[0]).stores[0].to = 99;
  control.bodies.push_back({{s.program.steps[0]}, {0}});
  s.program.steps = {control};
  EXPECT_THROW(verify(s.program), InternalError);
}

}  // namespace
}  // namespace tenon::loop

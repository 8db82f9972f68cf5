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

}  // namespace
}  // namespace tenon::loop

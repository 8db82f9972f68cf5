// What is computed when the state changes, and what at every run.
#include "tenon/optimize/fold_state.h"

#include <gtest/gtest.h>

#include "tenon/interp/program_runner.h"
#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

using namespace loop;

Program folded(std::string_view graph) { return prepare(functionalize(program_of(graph)), StageName::fused)->program; }

TEST(FoldState, WhatDependsOnParametersAloneIsDerived) {
  Program p = folded(R"(%p_w: f32[64, 32] = input()
%x: f32[4, 32] = input()
%e: f32[64, 32] = aten::exp(%p_w)
%t: f32[32, 64][1, 32] = aten::t(%e)
%y: f32[4, 64] = aten::mm(%x, %t)
return %y
)");
  ASSERT_EQ(p.on_state.size(), 1u);
  EXPECT_EQ(p.steps.size(), 1u);
  for_each_write(p, p.on_state[0], [&](BufferId b) { EXPECT_EQ(p.buffers[b].role, Role::derived); });
  const Gemm& gemm = std::get<Gemm>(p.steps[0]);
  EXPECT_EQ(p.buffers[gemm.b.buffer].role, Role::derived);
}

TEST(FoldState, AMaskOfConstantsIsMadeOnce) {
  Program p = folded(R"(%x: f32[16, 16] = input()
%r: i64[16] = aten::arange(16)
%c: i64[16, 1][1, 1] = aten::unsqueeze(%r, 1)
%m: bool[16, 16] = aten::ge.Tensor(%c, %r)
%z: f32[] = aten::scalar_tensor(0.0)
%n: f32[] = aten::scalar_tensor(-1.0)
%w: f32[16, 16] = aten::where.self(%m, %z, %n)
%y: f32[16, 16] = aten::mm(%x, %w)
return %y
)");
  EXPECT_EQ(p.on_state.size(), 1u);
  EXPECT_EQ(p.steps.size(), 1u);
}

TEST(FoldState, StateThatTheProgramWritesIsReadAtEveryRun) {
  Program p = folded(R"(%b_w: f32[4, 4] = input()
%x: f32[4, 4] = input()
%e: f32[4, 4] = aten::exp(%b_w)
%y: f32[4, 4] = aten::mm(%x, %e)
%n: f32[4, 4] = aten::add_.Tensor(%b_w, %x)
return %y
)");
  EXPECT_TRUE(p.on_state.empty());
}

TEST(FoldState, SizesThatTheCallerDecidesStay) {
  Program p = folded(R"(%p_w: f32[4] = input()
%x: f32[s0, 4] = input()
%e: f32[s0, 4][0, 1] = aten::expand(%p_w, [s0, 4])
%c: f32[s0, 4] = aten::exp(%e)
%t: f32[4, s0][1, 4] = aten::t(%c)
%y: f32[s0, s0] = aten::mm(%x, %t)
return %y
)");
  EXPECT_TRUE(p.on_state.empty());
}

TEST(FoldState, AnIndexThatMayBeWrongIsLookedUpAtEveryRun) {
  Program p = folded(R"(%p_w: f32[10, 3] = input()
%b_i: i64[3] = input()
%x: f32[3, 3] = input()
%e: f32[3, 3] = aten::embedding(%p_w, %b_i)
%y: f32[3, 3] = aten::mm(%x, %e)
return %y
)");
  EXPECT_TRUE(p.on_state.empty());
}

TEST(FoldState, DrawsAreMadeAtEveryRun) {
  Program p = folded(R"(%x: f32[4, 4] = input()
%r: f32[4, 4] = aten::rand([4, 4])
%y: f32[4, 4] = aten::mm(%x, %r)
return %y
)");
  EXPECT_TRUE(p.on_state.empty());
}

TEST(FoldState, NewContentsOfTheStateAreDerivedAnew) {
  ExportedProgram program = program_of(R"(%p_w: f32[2, 2] = input()
%x: f32[2, 2] = input()
%e: f32[2, 2] = aten::neg(%p_w)
%y: f32[2, 2] = aten::mm(%x, %e)
return %y
)");
  auto executable = prepare(functionalize(program));
  ASSERT_FALSE(executable->program.on_state.empty());
  State state;
  state.add("w", floats({2, 2}, {1, 2, 3, 4}));
  Session session(executable), other(executable);
  Tensor eye = floats({2, 2}, {1, 0, 0, 1});
  auto run = [&](Session& s) { return values_of(s.run(state, {eye}).outputs[0].as<Tensor>()); };
  EXPECT_EQ(run(session), (std::vector<float>{-1, -2, -3, -4}));
  EXPECT_EQ(run(session), (std::vector<float>{-1, -2, -3, -4}));
  state.set("w", floats({2, 2}, {5, 6, 7, 8}));
  EXPECT_EQ(run(session), (std::vector<float>{-5, -6, -7, -8}));
  EXPECT_EQ(run(other), (std::vector<float>{-5, -6, -7, -8}));
}

TEST(FoldState, SessionsOfOneStateShareWhatIsDerived) {
  ExportedProgram program = program_of(
      "%p_w: f32[64, 64] = input()\n%x: f32[1, 64] = input()\n"
      "%y: f32[1, 64] = aten::linear(%x, %p_w)\nreturn %y\n");
  auto executable = prepare(functionalize(program));
  State state;
  state.add("w", counting({64, 64}));
  auto derived = state.derived_by(executable);
  Session(executable).run(state, {counting({1, 64})});
  const std::byte* memory = derived->memory->data();
  uint64_t version = derived->version;
  Session(executable).run(state, {counting({1, 64})});
  EXPECT_EQ(state.derived_by(executable), derived);
  EXPECT_EQ(derived->memory->data(), memory);
  EXPECT_EQ(derived->version, version);
}

TEST(FoldState, AnotherStateInTheSamePlaceIsAnotherState) {
  ExportedProgram program = program_of(
      "%p_w: f32[1, 2] = input()\n%x: f32[1, 2] = input()\n"
      "%y: f32[1, 1] = aten::linear(%x, %p_w)\nreturn %y\n");
  Session session(prepare(functionalize(program)));
  alignas(State) std::byte place[sizeof(State)];
  for (float w : {1.0f, 2.0f, 3.0f}) {
    auto* state = new (place) State;
    state->add("w", floats({1, 2}, {w, w}));
    EXPECT_EQ(values_of(session.run(*state, {floats({1, 2}, {1, 1})}).outputs[0].as<Tensor>())[0], 2 * w);
    state->~State();
  }
}

}  // namespace
}  // namespace tenon

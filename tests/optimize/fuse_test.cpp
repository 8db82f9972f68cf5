// What fuse makes of stages. Texts of whole programs are in tests/golden/fused.txt.
#include "tenon/optimize/fuse.h"

#include <gtest/gtest.h>

#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

using namespace loop;

Program after(StageName stage, std::string_view graph) {
  return prepare(functionalize(program_of(graph)), stage)->program;
}
Program fused(std::string_view graph) { return after(StageName::fused, graph); }

std::string error_of(std::string_view graph, const std::vector<CallArg>& inputs, StageName stage) {
  ExportedProgram program = program_of(graph);
  std::unique_ptr<State> state = state_of(program);
  try {
    Session(prepare(functionalize(program), stage)).run(*state, inputs);
  } catch (const Error& e) { return e.what(); }
  return "";
}

TEST(Fuse, APerceptronOfThreeLayersIsThreeProductsAndWhatFollowsEach) {
  Program p = fused(R"(%p_a: f32[8, 4] = input()
%p_b: f32[8] = input()
%p_c: f32[2, 8] = input()
%p_d: f32[2] = input()
%x: f32[3, 4] = input()
%h: f32[3, 8] = aten::linear(%x, %p_a, %p_b)
%r: f32[3, 8] = aten::relu(%h)
%y: f32[3, 2] = aten::linear(%r, %p_c, %p_d)
return %y
)");
  EXPECT_EQ(p.steps.size(), 4u);
}

TEST(Fuse, LayerNormIsTwoReductionsAndOnePassOverTheRows) {
  Program p = fused(R"(%x: f32[4, 8] = input()
%w: f32[8] = input()
%b: f32[8] = input()
%y: f32[4, 8] = aten::layer_norm(%x, [8], %w, %b)
%z: f32[4, 8] = aten::relu(%y)
return %z
)");
  ASSERT_EQ(p.steps.size(), 3u);
  EXPECT_EQ(std::get<Stage>(p.steps[0]).accumulators.size(), 1u);
  EXPECT_EQ(std::get<Stage>(p.steps[1]).accumulators.size(), 1u);
  EXPECT_TRUE(std::get<Stage>(p.steps[2]).accumulators.empty());
}

TEST(Fuse, SoftmaxComputesItsExponentialsOnce) {
  Program p = fused("%x: f32[4, 80] = input()\n%y: f32[4, 80] = aten::_softmax(%x, 1, False)\nreturn %y\n");
  EXPECT_EQ(p.steps.size(), 4u);
}

TEST(Fuse, ACheapValueIsComputedByEachOfItsReaders) {
  Program p = fused(R"(%x: f32[100] = input()
%a: f32[100] = aten::neg(%x)
%b: f32[100] = aten::exp(%a)
%s: f32[] = aten::sum(%a)
return %b
return %s
)");
  EXPECT_EQ(p.steps.size(), 2u);
}

TEST(Fuse, AnExpensiveValueWithSeveralReadersIsStored) {
  Program p = fused(R"(%x: f32[10000] = input()
%a: f32[10000] = aten::exp(%x)
%s: f32[] = aten::sum(%a)
%m: f32[] = aten::amax(%a)
return %s
return %m
)");
  EXPECT_EQ(p.steps.size(), 3u);
}

TEST(Fuse, AnExpensiveValueThatIsRepeatedIsComputedOnce) {
  Program p = fused(R"(%x: f32[100] = input()
%y: f32[5000, 100] = input()
%a: f32[100] = aten::exp(%x)
%z: f32[5000, 100] = aten::mul.Tensor(%y, %a)
return %z
)");
  EXPECT_EQ(p.steps.size(), 2u);
}

TEST(Fuse, WindowsThatOverlapReadAStoredValue) {
  Program p = fused(R"(%x: f32[1, 1, 64, 64] = input()
%a: f32[1, 1, 64, 64] = aten::exp(%x)
%y: f32[1, 1, 62, 62] = aten::avg_pool2d(%a, [3, 3], [1, 1])
return %y
)");
  EXPECT_EQ(p.steps.size(), 2u);
}

TEST(Fuse, AnOperandOfAnAnchorIsStored) {
  Program p = fused(R"(%x: f32[4, 4] = input()
%a: f32[4, 4] = aten::exp(%x)
%y: f32[4, 4] = aten::mm(%a, %x)
return %y
)");
  EXPECT_EQ(p.steps.size(), 2u);
}

TEST(Fuse, AStageReadsWhatWasThereBeforeAnUpdate) {
  std::string_view graph = R"(%b_n: f32[3] = input()
%x: f32[3] = input()
%old: f32[3] = aten::neg(%b_n)
%n: f32[3] = aten::copy_(%b_n, %x)
%y: f32[3] = aten::add.Tensor(%old, %b_n)
return %y
)";
  ExportedProgram program = program_of(graph);
  State state;
  state.add("n", floats({3}, {1, 2, 3}));
  RunResult r = Session(prepare(functionalize(program), StageName::fused)).run(state, {floats({3}, {10, 20, 30})});
  EXPECT_EQ(values_of(r.outputs[0].as<Tensor>()), (std::vector<float>{9, 18, 27}));
  EXPECT_EQ(values_of(*state.find("n")), (std::vector<float>{10, 20, 30}));
}

constexpr std::string_view looked_up = R"(%w: f32[10, 3] = input()
%i: i64[2] = input()
%e: f32[2, 3] = aten::embedding(%w, %i)
%y: f32[2, 3] = aten::neg(%e)
return %y
)";

TEST(Fuse, AnIndexOutOfRangeIsReportedUnderTheNameOfItsOperator) {
  std::vector<CallArg> inputs{counting({10, 3}), integers({2}, {1, 10})};
  EXPECT_EQ(fused(looked_up).steps.size(), 1u);
  std::string error = error_of(looked_up, inputs, StageName::fused);
  EXPECT_EQ(error, error_of(looked_up, inputs, StageName::loops));
  EXPECT_NE(error.find("embedding"), std::string::npos) << error;
}

TEST(Fuse, AnIndexIsCheckedThoughNobodyReadsTheResult) {
  std::string_view graph = R"(%w: f32[10, 3] = input()
%i: i64[2] = input()
%e: f32[2, 3] = aten::embedding(%w, %i)
%y: f32[2] = aten::select.int(%w, 1, 0)
%z: i64[2] = aten::neg(%i)
return %z
)";
  std::vector<CallArg> inputs{counting({10, 3}), integers({2}, {1, 10})};
  EXPECT_EQ(error_of(graph, inputs, StageName::fused), error_of(graph, inputs, StageName::loops));
}

TEST(Fuse, AnUpdateStaysBehindTheCheckOfAnIndex) {
  Program p = fused(R"(%b_n: f32[2, 3] = input()
%w: f32[10, 3] = input()
%i: i64[2] = input()
%e: f32[2, 3] = aten::embedding(%w, %i)
%n: f32[2, 3] = aten::add_.Tensor(%b_n, %e)
return %e
)");
  ASSERT_EQ(p.steps.size(), 2u);
  for_each_write(p, p.steps[0], [&](BufferId b) { EXPECT_NE(p.buffers[b].role, Role::state); });
  for_each_write(p, p.steps[1], [&](BufferId b) { EXPECT_EQ(p.buffers[b].role, Role::state); });
}

TEST(Fuse, SharedPartsDoNotGrow) {
  std::string graph = "%x0: f32[100] = input()\n";
  for (int i = 0; i < 60; ++i) graph += text("%x", i + 1, ": f32[100] = aten::mul.Tensor(%x", i, ", %x", i, ")\n");
  graph += "return %x60\n";
  Program p = fused(graph);
  EXPECT_EQ(p.steps.size(), 1u);
  EXPECT_LT(p.arena.size(), 100u);
  EXPECT_LT(to_text(p).size(), 10000u);
}

TEST(Fuse, ThousandsOfLayersBecomeAFewSteps) {
  std::string graph = "%x: f32[100] = input()\n%a0: f32[100] = aten::exp(%x)\n";
  for (int i = 0; i < 3000; ++i) graph += text("%a", i + 1, ": f32[100] = aten::add.Tensor(%a", i, ", %x)\n");
  graph += "return %a3000\n";
  Program p = after(StageName::loops, graph);
  EXPECT_LT(optimize::fuse(std::move(p)).steps.size(), 60u);
}

}  // namespace
}  // namespace tenon

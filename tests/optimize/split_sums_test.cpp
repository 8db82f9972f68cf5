// Long reductions in two stages.
#include <gtest/gtest.h>

#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

using namespace loop;

Program packed(std::string_view graph) { return prepare(functionalize(program_of(graph)))->program; }

constexpr std::string_view channel_sums = R"(%x: f32[64, 3, 28, 28] = input()
%y: f32[3] = aten::sum.dim_IntList(%x, [0, 2, 3])
return %y
)";

TEST(SplitSums, ManyTermsToFewResultsAreTwoStages) {
  Program p = packed(channel_sums);
  ASSERT_EQ(p.steps.size(), 2u) << to_text(p);
  const Stage &first = std::get<Stage>(p.steps[0]), &second = std::get<Stage>(p.steps[1]);
  EXPECT_EQ(first.domain, (Sizes{64, 3}));
  EXPECT_EQ(first.reduce, (Sizes{28, 28}));
  EXPECT_EQ(second.domain, Sizes{3});
  EXPECT_EQ(second.reduce, Sizes{64});
  EXPECT_EQ(p.nodes.size(), p.steps.size());
}

TEST(SplitSums, ResultsAreThoseOfTheWhole) {
  Tensor x = counting({64, 3, 28, 28});
  State state;
  RunResult r = Session(prepare(functionalize(program_of(channel_sums)))).run(state, {x});
  std::vector<float> values = values_of(x), sums = values_of(r.outputs[0].as<Tensor>());
  for (size_t c = 0; c < 3; ++c) {
    double sum = 0;
    for (size_t n = 0; n < 64; ++n)
      for (size_t i = 0; i < 784; ++i) sum += static_cast<double>(values[(n * 3 + c) * 784 + i]);
    EXPECT_NEAR(sums[c], sum, 1e-6 * sum) << c;
  }
}

TEST(SplitSums, EveryReductionOfAStageIsSplitTheSameWay) {
  Program p = packed(R"(%x: f32[64, 3, 28, 28] = input()
%a: f32[3] = aten::amax(%x, [0, 2, 3])
%b: f32[3] = aten::amin(%x, [0, 2, 3])
%y: f32[3] = aten::sub.Tensor(%a, %b)
return %y
)");
  for (const Step& step : p.steps) EXPECT_LE(std::get<Stage>(step).reduce.size(), 2u) << to_text(p);
}

TEST(SplitSums, ABatchThatOnlyTheRunTellsIsALoopOfTheFirstStage) {
  Program p = packed(R"(%x: f32[s0, 3, 56, 56] = input()
%y: f32[3] = aten::sum.dim_IntList(%x, [0, 2, 3])
return %y
)");
  ASSERT_EQ(p.steps.size(), 2u) << to_text(p);
  EXPECT_EQ(std::get<Stage>(p.steps[0]).reduce, (Sizes{56, 56}));
}

constexpr std::string_view mean_of_an_image = R"(%p_w: f32[120, 40, 1, 1] = input()
%x: f32[1, 40, 28, 28] = input()
%c: f32[1, 120, 28, 28] = aten::convolution(%x, %p_w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
%y: f32[1, 120] = aten::mean.dim(%c, [2, 3])
return %y
)";

TEST(SplitSums, OfAnImageWhoseChannelsLieSideBySideEachRowIsSummedFirst) {
  Program p = packed(mean_of_an_image);
  std::vector<const Stage*> sums;
  for (const Step& step : p.steps)
    if (auto* stage = std::get_if<Stage>(&step); stage && !stage->accumulators.empty()) sums.push_back(stage);
  ASSERT_EQ(sums.size(), 2u) << to_text(p);
  EXPECT_EQ(sums[0]->domain, (Sizes{28, 1, 120}));
  EXPECT_EQ(sums[0]->reduce, Sizes{28});
  EXPECT_EQ(sums[1]->reduce, Sizes{28});
}

TEST(SplitSums, OfABatchOfLargeImagesEachRowIsSummedFirst) {
  Program p = packed(R"(%p_w: f32[16, 8, 1, 1] = input()
%x: f32[8, 8, 112, 112] = input()
%c: f32[8, 16, 112, 112] = aten::convolution(%x, %p_w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
%y: f32[16] = aten::sum.dim_IntList(%c, [0, 2, 3])
return %y
)");
  for (const Step& step : p.steps)
    if (auto* stage = std::get_if<Stage>(&step); stage && !stage->accumulators.empty()) {
      EXPECT_EQ(stage->reduce, Sizes{112}) << to_text(p);  // not the 12544 places of an image
      return;
    }
  FAIL() << to_text(p);
}

TEST(SplitSums, ShortOnesAndThoseWithManyResultsStayWhole) {
  for (std::string_view graph :
       {std::string_view("%x: f32[64, 768] = input()\n%y: f32[768] = aten::sum.dim_IntList(%x, "
                         "[0])\nreturn %y\n"),
        std::string_view("%x: f32[128, 1000] = input()\n%y: f32[128] = "
                         "aten::sum.dim_IntList(%x, [1])\nreturn %y\n")})
    EXPECT_EQ(packed(graph).steps.size(), 1u) << graph;
}

}  // namespace
}  // namespace tenon

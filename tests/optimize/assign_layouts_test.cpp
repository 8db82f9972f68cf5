// What assign_layouts makes of convolutions and what stands between them, and how they are computed then.
#include "tenon/optimize/assign_layouts.h"

#include <gtest/gtest.h>

#include "tenon/pipeline.h"
#include "tenon/plan/library.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

using namespace loop;

Program packed(std::string_view graph) { return prepare(functionalize(program_of(graph)))->program; }

/// How often the steps of a program call a function of the kernel library.
size_t calls_of(const Program& p, std::string_view function) {
  size_t found = 0;
  for (const Step& step : p.steps)
    if (std::holds_alternative<Convolution>(step))
      for (const plan::LibraryCall& call : plan::library_calls(p, step).calls) found += call.function == function;
  return found;
}

/// The buffers of a program whose dimension 1 of several lies innermost.
size_t channels_last(const Program& p) {
  size_t found = 0;
  for (const Buffer& b : p.buffers)
    found += b.role == Role::arena && b.sizes.size() == 4 && b.strides[1] == SymInt(1) && b.strides[3] != SymInt(1);
  return found;
}

constexpr std::string_view inverted_residual = R"(%p_e: f32[32, 16, 1, 1] = input()
%p_d: f32[32, 1, 3, 3] = input()
%p_s: f32[16, 32, 1, 1] = input()
%x: f32[1, 16, 8, 8] = input()
%a: f32[1, 16, 8, 8] = aten::exp(%x)
%e: f32[1, 32, 8, 8] = aten::convolution(%a, %p_e, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
%r: f32[1, 32, 8, 8] = aten::hardtanh(%e, 0.0, 6.0)
%d: f32[1, 32, 8, 8] = aten::convolution(%r, %p_d, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 32)
%h: f32[1, 32, 8, 8] = aten::hardswish(%d)
%s: f32[1, 16, 8, 8] = aten::convolution(%h, %p_s, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
%y: f32[1, 16, 8, 8] = aten::add.Tensor(%s, %a)
%m: f32[1, 16, 1, 1] = aten::mean.dim(%y, [2, 3], True)
return %m
)";

TEST(AssignLayouts, NothingIsTurnedBetweenConvolutions) {
  Program p = packed(inverted_residual);
  EXPECT_EQ(calls_of(p, "convolution_stage_f32"), 0u) << to_text(p);
  EXPECT_EQ(calls_of(p, "convolution_f32") + calls_of(p, "convolution_depthwise_f32"), 3u);
  EXPECT_EQ(p.steps.size(), 7u) << to_text(p);  // what turns the input, three convolutions, activations, the mean
  EXPECT_EQ(channels_last(p), 6u) << to_text(p);
}

TEST(AssignLayouts, AProgramsOwnInputsAndOutputsKeepTheirStrides) {
  Program p = packed(R"(%p_a: f32[16, 16, 1, 1] = input()
%p_b: f32[16, 16, 1, 1] = input()
%x: f32[1, 16, 8, 8] = input()
%a: f32[1, 16, 8, 8] = aten::convolution(%x, %p_a, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
%y: f32[1, 16, 8, 8] = aten::convolution(%a, %p_b, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
return %y
)");
  EXPECT_EQ(calls_of(p, "convolution_stage_f32"), 1u);
  for (const Buffer& b : p.buffers)
    if (b.role == Role::input || b.role == Role::output) { EXPECT_EQ(b.strides, contiguous_strides(b.sizes)); }
  EXPECT_EQ(channels_last(p), 1u);
}

TEST(AssignLayouts, PoolingAndConcatenationFollow) {
  Program p = packed(R"(%p_a: f32[16, 3, 3, 3] = input()
%p_b: f32[16, 16, 1, 1] = input()
%p_c: f32[16, 32, 1, 1] = input()
%x: f32[1, 3, 16, 16] = input()
%a: f32[1, 16, 16, 16] = aten::convolution(%x, %p_a, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
%m: f32[1, 16, 8, 8] = aten::max_pool2d(%a, [3, 3], [2, 2], [1, 1], [1, 1], False)
%b: f32[1, 16, 8, 8] = aten::convolution(%m, %p_b, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
%k: f32[1, 32, 8, 8] = aten::cat([%m, %b], 1)
%c: f32[1, 16, 8, 8] = aten::convolution(%k, %p_c, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
%y: f32[1, 16, 1, 1] = aten::mean.dim(%c, [2, 3], True)
return %y
)");
  EXPECT_EQ(calls_of(p, "convolution_stage_f32"), 1u) << to_text(p);  // the caller's image
}

TEST(AssignLayouts, WhatIsFlattenedAcrossChannelsAndPlacesKeepsItsOrder) {
  Program p = packed(R"(%p_a: f32[16, 16, 1, 1] = input()
%p_w: f32[10, 1024] = input()
%x: f32[1, 16, 8, 8] = input()
%a: f32[1, 16, 8, 8] = aten::convolution(%x, %p_a, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
%f: f32[1, 1024] = aten::reshape(%a, [1, 1024])
%y: f32[1, 10] = aten::linear(%f, %p_w)
return %y
)");
  EXPECT_EQ(channels_last(p), 0u) << to_text(p);
}

TEST(AssignLayouts, StatisticsOverChannelsAndPlacesKeepTheirOrder) {
  Program p = packed(R"(%p_a: f32[16, 16, 1, 1] = input()
%x: f32[1, 16, 8, 8] = input()
%a: f32[1, 16, 8, 8] = aten::convolution(%x, %p_a, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
%y: f32[1, 16, 8, 8] = aten::group_norm(%a, 4)
return %y
)");
  EXPECT_EQ(channels_last(p), 0u) << to_text(p);
}

constexpr std::string_view three_by_three = R"(%p_a: f32[64, 64, 3, 3] = input()
%p_b: f32[64, 64, 3, 3] = input()
%x: f32[1, 64, 28, 28] = input()
%a: f32[1, 64, 28, 28] = aten::convolution(%x, %p_a, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
%b: f32[1, 64, 28, 28] = aten::convolution(%a, %p_b, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
%y: f32[1, 64, 1, 1] = aten::mean.dim(%b, [2, 3], True)
return %y
)";

TEST(PackWeights, WinogradIsTakenWhereItIsLessWork) {
  Program p = packed(three_by_three);
  EXPECT_EQ(calls_of(p, "convolution_winograd_f32"), 2u) << to_text(p);
  EXPECT_EQ(calls_of(p, "convolution_stage_f32"), 1u);  // the caller's image
}

TEST(PackWeights, FewChannelsAndStepsOfTwoAreDirect) {
  Program p = packed(R"(%p_a: f32[64, 24, 3, 3] = input()
%p_b: f32[64, 64, 3, 3] = input()
%x: f32[1, 24, 28, 28] = input()
%a: f32[1, 64, 28, 28] = aten::convolution(%x, %p_a, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
%b: f32[1, 64, 14, 14] = aten::convolution(%a, %p_b, None, [2, 2], [1, 1], [1, 1], False, [0, 0], 1)
%y: f32[1, 64, 1, 1] = aten::mean.dim(%b, [2, 3], True)
return %y
)");
  EXPECT_EQ(calls_of(p, "convolution_f32"), 2u);
}

}  // namespace
}  // namespace tenon

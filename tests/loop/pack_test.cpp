// Operands in panels: the sizes of what a Pack step writes, and the steps that read it.
#include "tenon/loop/pack.h"

#include <gtest/gtest.h>

#include "tests/loop/small_program.h"

namespace tenon::loop {
namespace {

Gemm gemm(SymInt batch, SymInt k, SymInt n, SymInt batch_stride) {
  Gemm g;
  g.b = {0, {batch, k, n}, {batch_stride, n, 1}, 0};
  return g;
}
Convolution convolution(Sizes weights, int64_t groups, bool transposed = false) {
  Convolution c;
  c.w = {0, weights, Sizes(weights.size(), 1), 0};
  c.x = c.y = {0, Sizes(weights.size(), 9), Sizes(weights.size(), 1), 0};
  c.stride = c.dilation = Sizes(weights.size() - 2, 1);
  c.padding = c.output_padding = Sizes(weights.size() - 2, 0);
  c.groups = groups;
  c.transposed = transposed;
  return c;
}

TEST(Pack, AMatrixBecomesPanelsOfSixteenColumns) {
  EXPECT_EQ(packed_sizes(pack_of(gemm(3, 5, 33, 165), 1)), (Sizes{3, 3, 5, 16}));
  EXPECT_EQ(with_packed(gemm(3, 5, 33, 165), 1).b.strides[0], SymInt(3 * 5 * 16));
}

TEST(Pack, AMatrixThatTheBatchSharesIsPackedOnce) {
  EXPECT_EQ(packed_sizes(pack_of(gemm(3, 5, 16, 0), 1)), (Sizes{1, 1, 5, 16}));
  EXPECT_EQ(with_packed(gemm(3, 5, 16, 0), 1).b.strides[0], SymInt(0));
}

TEST(Pack, WeightsAreSummedOverTheChannelsThatTheResultDoesNotHave) {
  Convolution c = convolution({32, 8, 3, 5}, 2);
  EXPECT_EQ(packed_sizes(pack_of(c, 1)), (Sizes{2, 1, 8 * 15, 16}));
  c.part = ConvPart::input_gradient;
  EXPECT_EQ(packed_sizes(pack_of(c, 1)), (Sizes{2, 1, 16 * 15, 16}));
  EXPECT_EQ(packed_sizes(pack_of(convolution({8, 32, 3}, 1, true), 1)), (Sizes{1, 2, 8 * 3, 16}));
}

TEST(Pack, DepthwiseWeightsHaveTheirChannelsSideBySide) {
  EXPECT_TRUE(is_depthwise(convolution({20, 1, 3, 3}, 20)));
  EXPECT_EQ(packed_sizes(pack_of(convolution({20, 1, 3, 3}, 20), 1)), (Sizes{1, 2, 9, 16}));
}

TEST(Pack, AStepThatIsNeverTakenDoesNotCount) {
  Convolution c = convolution({16, 16, 3}, 1);
  c.stride = {1000000};
  EXPECT_EQ(taken_stride(c), Sizes{1000000});
  c.y.sizes[2] = 1;
  EXPECT_EQ(taken_stride(c), Sizes{3});
  EXPECT_EQ(pack_of(c, 1).stride, Sizes{3});
}

TEST(Pack, AStepReadsItsEpilogue) {
  SmallProgram s;
  Gemm g = std::get<Gemm>(s.program.steps[1]);
  g.epilogue = {.has_bias = true, .relu = true, .bias = {s.w, {2}, {1}, 0}};
  bool read = false;
  for_each_read(s.program, g, [&](BufferId b) { read = read || b == s.w; });
  EXPECT_TRUE(read);
  s.program.steps[1] = g;
  EXPECT_NE(to_text(s.program).find(", bias w[2][1], relu)"), std::string::npos) << to_text(s.program);
}

TEST(Pack, PackingReadsTheMatrixAndWritesThePanels) {
  SmallProgram s;
  BufferId to = s.buffer("packed", {1, 1, 3, 16}, Role::derived);
  Pack pack = pack_of(std::get<Gemm>(s.program.steps[1]), to);
  for_each_read(s.program, pack, [&](BufferId b) { EXPECT_EQ(b, s.x); });
  for_each_write(s.program, pack, [&](BufferId b) { EXPECT_EQ(b, to); });
  s.program.on_state.emplace_back(pack);
  EXPECT_NE(to_text(s.program).find("packed = pack(x[1, 3, 2]"), std::string::npos) << to_text(s.program);
}

}  // namespace
}  // namespace tenon::loop

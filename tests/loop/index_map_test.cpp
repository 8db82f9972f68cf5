#include "tenon/loop/index_map.h"

#include <gtest/gtest.h>

#include "tenon/base/error.h"

namespace tenon {
namespace {

TensorMeta matrix() { return make_meta(DType::f32, {4, 6}); }

TEST(IndexMap, APermutationExchangesStrides) {
  TensorMeta t = viewed(remap::Permute{{1, 0}}, matrix());
  EXPECT_EQ(t.sizes, (Sizes{6, 4}));
  EXPECT_EQ(t.strides, (Sizes{1, 6}));
  EXPECT_FALSE(overlaps(remap::Permute{{1, 0}}, matrix()));
}

TEST(IndexMap, ASliceMovesTheOffsetAndWidensTheStride) {
  TensorMeta t = viewed(remap::Slice{.dim = 1, .start = 1, .size = 2, .step = 3}, matrix());
  EXPECT_EQ(t.sizes, (Sizes{4, 2}));
  EXPECT_EQ(t.strides, (Sizes{6, 3}));
  EXPECT_EQ(t.offset, SymInt(1));
}

TEST(IndexMap, AnExpandedDimensionHasStrideZeroAndCannotBeWritten) {
  TensorMeta row = make_meta(DType::f32, {1, 6});
  TensorMeta t = viewed(remap::Expand{{5, 4, 6}}, row);
  EXPECT_EQ(t.sizes, (Sizes{5, 4, 6}));
  EXPECT_EQ(t.strides, (Sizes{0, 0, 1}));
  EXPECT_TRUE(overlaps(remap::Expand{{5, 4, 6}}, row));
  EXPECT_FALSE(overlaps(remap::Expand{{1, 6}}, row));
}

// Two symbols that a guard makes equal: no dimension is repeated.
TEST(IndexMap, AnExpandedDimensionOfAnotherNameKeepsItsStride) {
  SymInt n = SymInt::symbol("s0"), m = SymInt::symbol("s1");
  TensorMeta column = make_meta(DType::f32, {n, SymInt(1)});
  EXPECT_EQ(viewed(remap::Expand{{m, 4}}, column).strides, (Sizes{1, 0}));
}

TEST(IndexMap, AReshapeSplitsAndMergesWhereStridesAllowIt) {
  EXPECT_EQ(viewed(remap::Reshape{{2, 2, 6}}, matrix()).strides, (Sizes{12, 6, 1}));
  EXPECT_EQ(viewed(remap::Reshape{{24}}, matrix()).strides, Sizes{1});
}

TEST(IndexMap, AViewOfOneDimensionByAnotherNameHasTheSameStrides) {
  SymInt n = SymInt::symbol("s0"), m = SymInt::symbol("s1");
  EXPECT_EQ(view_strides({n, 1, m}, {m * 3, m * n, 1}, {n, 1, 2}), (Sizes{m * 3, m * n, 1}));
  EXPECT_EQ(view_strides({n, m}, {m * 3, 1}, {m, n}), std::nullopt);
}

TEST(IndexMap, ViewStridesAreNoneWhereOnlyACopyCanDoIt) {
  EXPECT_FALSE(view_strides({6, 4}, {1, 6}, {24}));
  EXPECT_EQ(view_strides({6, 4}, {1, 6}, {2, 3, 4}), (Sizes{3, 1, 6}));
  EXPECT_EQ(view_strides({4, 6}, {6, 1}, {24}), Sizes{1});
}

TEST(IndexMap, SymbolicSizesMergeAsExpressions) {
  SymInt n = SymInt::symbol("s0", {.positive = true});
  auto strides = view_strides({n, 6}, {6, 1}, {n * 6});
  ASSERT_TRUE(strides);
  EXPECT_EQ(*strides, Sizes{1});
}

TEST(IndexMap, ADiagonalIsTheLastDimension) {
  TensorMeta t = viewed(remap::Diagonal{.dim1 = 0, .dim2 = 1, .offset = 1, .size = 4}, matrix());
  EXPECT_EQ(t.sizes, Sizes{4});
  EXPECT_EQ(t.strides, Sizes{7});
  EXPECT_EQ(t.offset, SymInt(1));
}

TEST(IndexMap, WindowsOverlapWhereTheStepIsSmallerThanTheSize) {
  remap::Unfold window{.dim = 1, .size = 3, .step = 2};
  TensorMeta t = viewed(window, matrix());
  EXPECT_EQ(t.sizes, (Sizes{4, 2, 3}));
  EXPECT_EQ(t.strides, (Sizes{6, 2, 1}));
  EXPECT_TRUE(overlaps(window, matrix()));
  EXPECT_FALSE(overlaps(remap::Unfold{.dim = 1, .size = 3, .step = 3}, matrix()));
}

TEST(IndexMap, PartsApplyFromTheBaseToTheResult) {
  IndexMap map{{remap::Permute{{1, 0}}, remap::Slice{.dim = 0, .start = 2, .size = 1}, remap::Reshape{{4}}}};
  TensorMeta t = viewed(map, matrix());
  EXPECT_EQ(t.sizes, Sizes{4});
  EXPECT_EQ(t.strides, Sizes{6});
  EXPECT_EQ(t.offset, SymInt(2));
}

TEST(IndexMap, NoPartsAreTheSameTensor) { EXPECT_EQ(viewed(IndexMap{}, matrix()).strides, matrix().strides); }

TEST(IndexMap, OtherBytesOfTheSameWidthKeepSizes) {
  TensorMeta t = viewed(remap::Reinterpret{DType::i32}, matrix());
  EXPECT_EQ(t.dtype, DType::i32);
  EXPECT_EQ(t.sizes, matrix().sizes);
}

TEST(IndexMap, AReshapeThatIsNoViewIsRefused) {
  TensorMeta t = viewed(remap::Permute{{1, 0}}, matrix());
  EXPECT_ANY_THROW(viewed(remap::Reshape{{24}}, t));
}

}  // namespace
}  // namespace tenon

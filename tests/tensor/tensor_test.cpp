#include "tenon/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tenon/tensor/ones.h"

namespace tenon {
namespace {

Tensor tensor_of(std::initializer_list<double> values) {
  Tensor t = Tensor::empty(DType::f64, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.mutable_data<double>());
  return t;
}

Tensor with(const Tensor& t, Sizes sizes, int64_t offset) {
  TensorMeta meta = make_meta(t.dtype(), std::move(sizes));
  meta.offset = offset;
  return t.with_meta(std::move(meta));
}

template <class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const Error& error) { return error.what(); } catch (const InternalError& error) {
    return error.what();
  }
  return "";
}

TEST(Scalar, IsReadFromOneElementOfAnyRank) {
  EXPECT_EQ(scalar_value(tensor_of({2.5})), 2.5);
  EXPECT_EQ(scalar_value(with(tensor_of({1, 2, 3}), {1, 1}, 2)), 3);
  EXPECT_EQ(scalar_integer(with(tensor_of({1, 7}), {}, 1)), 7);
}

TEST(Scalar, AnyOtherCountIsRefused) {
  for (const Tensor& t : {tensor_of({}), tensor_of({1, 2}), with(tensor_of({1}), {0}, int64_t{1} << 44)}) {
    EXPECT_NE(message([&] { scalar_integer(t); }).find("a tensor of one element was expected"), std::string::npos);
    EXPECT_NE(message([&] { scalar_value(t); }).find("a tensor of one element was expected"), std::string::npos);
  }
}

TEST(Scalar, AnElementOutsideOfTheStorageIsRefused) {
  EXPECT_NE(message([&] {
              scalar_integer(with(tensor_of({1, 2}), {}, 2));
            }).find("its storage has 16"),
            std::string::npos);
  EXPECT_NE(message([&] { scalar_value(with(tensor_of({1, 2}), {}, int64_t{1} << 61)); }), "");
}

TEST(Scalar, NumbersBeyond64BitsBecomeTheNearestInteger) {
  EXPECT_EQ(scalar_integer(tensor_of({1e300})), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(scalar_integer(tensor_of({-1e300})), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(scalar_integer(tensor_of({std::nan("")})), 0);
}

TEST(Tensor, AnEmptyOneMayBeginAnywhereAndNeverPointsThere) {
  Tensor t = tensor_of({1, 2});
  Tensor far = with(t, {0}, int64_t{1} << 44);
  require_fits(far.meta(), far.storage()->size(), "x");
  EXPECT_EQ(far.bytes(), t.bytes());
  EXPECT_EQ(far.mutable_bytes(), t.bytes());
  EXPECT_EQ(contiguous_copy(far).numel(), SymInt(0));
}

TEST(Tensor, AnOffsetThatOverflowsIsRefusedForEmptyOnesToo) {
  Tensor far = with(tensor_of({1}), {0}, std::numeric_limits<int64_t>::max());
  EXPECT_NE(message([&] { require_fits(far.meta(), 8, "x"); }).find("reaches further than 64 bits"), std::string::npos);
}

TEST(Tensor, OneWithElementsNeverPointsOutsideOfItsStorage) {
  Tensor t = tensor_of({1, 2});
  EXPECT_EQ(with(t, {1}, 1).bytes(), t.bytes() + 8);
  EXPECT_NE(message([&] { with(t, {1}, 2).bytes(); }), "");
  EXPECT_NE(message([&] { with(t, {1}, -1).bytes(); }), "");
}

TEST(Tensor, OneThatIsNoneSaysSo) {
  Tensor none;
  EXPECT_EQ(message([&] { none.meta(); }), "a tensor was expected, got None");
  EXPECT_EQ(message([&] { none.rank(); }), "a tensor was expected, got None");
  EXPECT_EQ(message([&] { none.storage(); }), "a tensor was expected, got None");
}

TEST(Ones, AreFilledWhereThereAreFewAndExpandedWhereThereAreMany) {
  Tensor few = ones_tensor(DType::f32, {2, 3});
  EXPECT_TRUE(is_contiguous(few.meta()));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(few.data<float>()[i], 1.0f);
  Tensor many = ones_tensor(DType::f64, {int64_t{1} << 20, int64_t{1} << 20});
  EXPECT_EQ(many.storage()->size(), 8u);
  EXPECT_EQ(many.strides(), (Sizes{0, 0}));
  EXPECT_EQ(*many.data<double>(), 1.0);
  EXPECT_EQ(ones_tensor(DType::f32, {0, int64_t{1} << 40}).numel(), SymInt(0));
}

}  // namespace
}  // namespace tenon

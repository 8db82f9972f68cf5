// What the sweep has no samples for: forms PyTorch's own samples never call, and what must not touch memory.
#include "tenon/ops/reduction.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tenon/interp/eager.h"
#include "tenon/ops/arithmetic.h"
#include "tenon/ops/batch_norm.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/loss.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

class Reduce : public testing::Test {
 protected:
  Reduce() { interp::install(); }
};

Tensor row(std::initializer_list<float> numbers) {
  Tensor t = Tensor::empty(DType::f32, {SymInt(static_cast<int64_t>(numbers.size()))});
  std::copy(numbers.begin(), numbers.end(), t.mutable_data<float>());
  return t;
}
Tensor classes(std::initializer_list<int64_t> numbers) {
  Tensor t = Tensor::empty(DType::i64, {SymInt(static_cast<int64_t>(numbers.size()))});
  std::copy(numbers.begin(), numbers.end(), t.mutable_data<int64_t>());
  return t;
}
std::vector<float> values(const Tensor& t) {
  Tensor c = contiguous_copy(t);
  return std::vector<float>(c.data<float>(), c.data<float>() + c.numel().as_int());
}
Results named(const char* name, CallArgs args) { return call_op(*registry().find(name), std::move(args)); }

TEST_F(Reduce, NormOfAllElementsTakesAnyOrder) {
  Tensor x = row({3, -4, 0});
  EXPECT_FLOAT_EQ(scalar_value(named("aten::norm.Scalar", {x, 2})[0]), 5);
  EXPECT_FLOAT_EQ(scalar_value(named("aten::norm.Scalar", {x, 0})[0]), 2);
  EXPECT_FLOAT_EQ(scalar_value(named("aten::norm.Scalar", {x, HUGE_VAL})[0]), 4);
  EXPECT_EQ(named("aten::norm.ScalarOpt_dtype", {x, CallArg(), DType::f64})[0].dtype(), DType::f64);
}

TEST_F(Reduce, ANumberIsFoundInSortedBoundaries) {
  Tensor edges = row({1, 3, 3, 5});
  EXPECT_EQ(scalar_integer(named("aten::searchsorted.Scalar", {edges, 3, false, false, CallArg(), CallArg()})[0]), 1);
  EXPECT_EQ(scalar_integer(named("aten::searchsorted.Scalar", {edges, 3, false, true, CallArg(), CallArg()})[0]), 3);
  EXPECT_EQ(scalar_integer(named("aten::bucketize.Scalar", {9, edges, false, false})[0]), 4);
}

TEST_F(Reduce, PlacesOfTheLargestLieWithinTheImageAndTheLastNaNCounts) {
  Tensor x = view(row({0, 0, 0, 0, 0, 0, 0, 2, 0, 0, NAN, 0, 0, 0, 0, NAN, 0, 0, 0, NAN}), Sizes{1, 1, 4, 5});
  Tensor at = contiguous_copy(
      named("aten::max_pool2d_with_indices", {x, Sizes{3, 3}, Sizes{2, 2}, Sizes{1, 1}, Sizes{1, 1}, true})[1]);
  const std::vector<int64_t> places(at.data<int64_t>(), at.data<int64_t>() + at.numel().as_int());
  EXPECT_EQ(places, (std::vector<int64_t>{0, 7, 3, 15, 7, 19, 15, 16, 19}));  // PyTorch's
}

TEST_F(Reduce, AClassOutOfRangeIsAnErrorAndIgnoredOnesCountForNothing) {
  Tensor logs = view(row({-1, -2, -3, -4}), Sizes{2, 2});
  EXPECT_THROW(nll_loss_nd(logs, classes({0, 7})), Error);
  EXPECT_FLOAT_EQ(scalar_value(nll_loss_nd(logs, classes({1, -100}))), 2);
}

TEST_F(Reduce, BatchNormWritesItsRunningStatistics) {
  Tensor x = view(row({1, 2, 3, 4}), Sizes{4, 1}), mean = row({0}), var = row({1});
  batch_norm(x, none, none, mean, var, true, 0.1, 1e-5, true);
  EXPECT_FLOAT_EQ(values(mean)[0], 0.25f);
  EXPECT_FLOAT_EQ(values(var)[0], 0.9f + 0.1f * 5.0f / 3.0f);  // unbiased: 5 / 3
}

TEST_F(Reduce, ThereIsNoMaximumOfNothing) {
  EXPECT_THROW(amax(Tensor::empty(DType::f32, {0, 3}), Sizes{0}), Error);
  EXPECT_EQ(Tensor(amax(Tensor::empty(DType::f32, {0, 3}), Sizes{1})).sizes(), Sizes{0});
}

TEST_F(Reduce, CumprodBackwardIsExactAtZeros) {
  // y = (2, 0, 0): only the zero itself sees what comes after it, without itself.
  Tensor x = row({2, 0, 5}), ones = row({1, 1, 1}), y = row({2, 0, 0});
  EXPECT_EQ(values(named("aten::cumprod_backward", {ones, x, 0, y})[0]), (std::vector<float>{1, 12, 0}));
}

}  // namespace
}  // namespace tenon

#include "tenon/ops/random.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tenon/interp/eager.h"
#include "tenon/ops/complex.h"
#include "tenon/ops/conversion.h"
#include "tenon/ops/creation.h"
#include "tenon/ops/dropout.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

class Random : public testing::Test {
 protected:
  Random() { interp::install(); }
};

std::vector<double> values(const Tensor& t) {
  Tensor wide = contiguous_copy(to(t, DType::f64));
  return std::vector<double>(wide.data<double>(), wide.data<double>() + wide.numel().as_int());
}

double mean(const std::vector<double>& x) {
  double sum = 0;
  for (double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

Tensor uniform(const Tensor& state, int64_t stream, Sizes sizes, DType dtype = DType::f32) {
  return random_uniform(state, stream, sizes, kw("dtype", dtype));
}

Results call_named(const char* name, CallArgs args) { return call_op(*registry().find(name), std::move(args)); }

TEST_F(Random, BitsArePhiloxs) {  // the published answers for key 0 and counter 0
  std::vector<double> got = values(uniform(random_state(0, 0), 0, {4}));
  const uint32_t words[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(got[i], (words[i] >> 8) * 0x1p-24);
}

TEST_F(Random, AStateAndStreamGiveTheSameNumbersAgain) {
  EXPECT_EQ(values(uniform(random_state(7, 3), 2, {5, 3})), values(uniform(random_state(7, 3), 2, {5, 3})));
}

TEST_F(Random, AnotherSeedCounterOrStreamGivesOthers) {
  std::vector<double> first = values(uniform(random_state(7, 3), 2, {16}));
  EXPECT_NE(first, values(uniform(random_state(8, 3), 2, {16})));
  EXPECT_NE(first, values(uniform(random_state(7, 4), 2, {16})));
  EXPECT_NE(first, values(uniform(random_state(7, 3), 3, {16})));
}

TEST_F(Random, UniformNumbersFillTheirInterval) {
  for (DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    std::vector<double> x = values(uniform(random_state(1, 0), 0, {20000}, dtype));
    auto [low, high] = std::minmax_element(x.begin(), x.end());
    EXPECT_GE(*low, 0) << name(dtype);
    EXPECT_LT(*high, 1) << name(dtype);
    EXPECT_GT(*high, 0.99) << name(dtype);
    EXPECT_NEAR(mean(x), 0.5, 0.01) << name(dtype);
  }
}

TEST_F(Random, NormalNumbersHaveMeanZeroAndVarianceOne) {
  for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    std::vector<double> x = values(random_normal(random_state(1, 0), 0, Sizes{20000}, kw("dtype", dtype)));
    EXPECT_NEAR(mean(x), 0, 0.03) << name(dtype);
    for (double& v : x) v *= v;
    EXPECT_NEAR(mean(x), 1, 0.05) << name(dtype);
  }
}

TEST_F(Random, PartsOfComplexNormalNumbersShareTheVarianceAndAreIndependent) {
  seed_random(1);
  const Tensor like = full(Sizes{20000}, 0.0, kw("dtype", DType::c64));
  const Tensor z = call_named("aten::randn_like", {like, CallArg(), CallArg(), CallArg(), CallArg(), CallArg()});
  ASSERT_EQ(z.dtype(), DType::c64);
  const std::vector<double> parts = values(view_as_real(z));
  double squares[2] = {}, product = 0, sums[2] = {};
  for (size_t i = 0; i < parts.size(); i += 2) {
    for (size_t k : {0, 1}) sums[k] += parts[i + k], squares[k] += parts[i + k] * parts[i + k];
    product += parts[i] * parts[i + 1];
  }
  const double count = static_cast<double>(parts.size()) / 2;
  for (size_t k : {0, 1}) {
    EXPECT_NEAR(sums[k] / count, 0, 0.02);  // four deviations of a mean of 20,000, as below
    EXPECT_NEAR(squares[k] / count, 0.5, 0.02);
  }
  EXPECT_NEAR(product / count, 0, 0.0142);
}

TEST_F(Random, IntegersLieBetweenTheirBounds) {
  std::vector<double> x = values(random_int(random_state(1, 0), 0, -2, 3, Sizes{1000}, kw("dtype", DType::i64)));
  std::sort(x.begin(), x.end());
  x.erase(std::unique(x.begin(), x.end()), x.end());
  EXPECT_EQ(x, (std::vector<double>{-2, -1, 0, 1, 2}));
}

TEST_F(Random, APermutationHasEveryNumberOnce) {
  std::vector<double> x = values(random_permutation(random_state(1, 0), 0, 50, kw("dtype", DType::i64))), counted(50);
  for (size_t i = 0; i < 50; ++i) counted[i] = static_cast<double>(i);
  EXPECT_NE(x, counted);
  std::sort(x.begin(), x.end());
  EXPECT_EQ(x, counted);
}

TEST_F(Random, CallsInAScopeAreStreamsOfItsState) {
  auto draw_two = [] {
    RandomScope scope([] { return random_state(5, 0); });
    Tensor a = call_named("aten::rand", {Sizes{8}, {}, {}, {}, {}}),
           b = call_named("aten::rand", {Sizes{8}, {}, {}, {}, {}});
    return std::pair(values(a), values(b));
  };
  auto [a, b] = draw_two();
  EXPECT_NE(a, b);
  EXPECT_EQ(draw_two(), std::pair(a, b));
  EXPECT_EQ(b, values(uniform(random_state(5, 0), 1, {8})));
}

TEST_F(Random, ASeedStartsTheProcessStateAnew) {
  auto draw = [] { return values(call_named("aten::randn", {Sizes{8}, {}, {}, {}, {}})); };
  seed_random(3);
  std::vector<double> first = draw(), second = draw();
  EXPECT_NE(first, second);
  seed_random(3);
  EXPECT_EQ(draw(), first);
}

TEST_F(Random, NumbersLikeATensorHaveItsStrides) {
  Tensor x = Tensor::empty(TensorMeta{.dtype = DType::f32, .sizes = {4, 3}, .strides = {1, 4}});
  EXPECT_EQ(uniform_like(x).strides(), (Sizes{1, 4}));
}

TEST_F(Random, DropoutOutsideTrainingIsTheTensorItself) {
  Tensor x = full(Sizes{3}, 2);
  EXPECT_TRUE(Tensor(dropout(x, 0.5, false)).same_as(x));
}

TEST_F(Random, DropoutKeepsItsShareAndScalesIt) {
  std::vector<double> x = values(dropout(full(Sizes{4000}, 1.0), 0.75, true));
  for (double v : x) EXPECT_TRUE(v == 0 || v == 4) << v;
  EXPECT_NEAR(mean(x), 1, 0.15);
}

TEST_F(Random, ProbabilitiesOfZeroAndOneAreCertain) {
  Tensor p = call_named("aten::bernoulli.p", {Tensor(full(Sizes{100}, 0.0)), 1.0, {}});
  EXPECT_EQ(mean(values(p)), 1);
  p = call_named("aten::bernoulli.p", {Tensor(full(Sizes{100}, 0.0)), 0.0, {}});
  EXPECT_EQ(mean(values(p)), 0);
}

TEST_F(Random, SamplesFollowTheirWeights) {
  Tensor p = Tensor::empty(DType::f32, {3});
  for (int i = 0; i < 3; ++i) p.mutable_data<float>()[i] = static_cast<float>(i);  // weights 0, 1, 2
  std::vector<double> x = values(call_named("aten::multinomial", {p, 3000, true, {}}));
  EXPECT_EQ(std::count(x.begin(), x.end(), 0), 0);
  EXPECT_NEAR(static_cast<double>(std::count(x.begin(), x.end(), 2)), 2000, 120);
  x = values(call_named("aten::multinomial", {p, 2, false, {}}));
  std::sort(x.begin(), x.end());
  EXPECT_EQ(x, (std::vector<double>{1, 2}));
}

TEST_F(Random, InPlaceFormsWriteTheirTensor) {
  seed_random(1);
  Tensor x = full(Sizes{1000}, 0.0);
  call_named("aten::normal_", {x, 5.0, 2.0, {}});
  EXPECT_NEAR(mean(values(x)), 5, 0.3);
  call_named("aten::bernoulli_.float", {x, 0.5, {}});
  EXPECT_NEAR(mean(values(x)), 0.5, 0.1);
}

}  // namespace
}  // namespace tenon

// Initial values have the distributions that PyTorch documents: bounds, means and deviations over many draws.
#include <gtest/gtest.h>
#include <tenon/nn.h>
#include <tenon/tenon.h>

#include <cmath>

namespace {

using namespace tenon;

struct Statistics {
  double mean, deviation, low, high;
};
Statistics of(const Tensor& t) {
  Tensor x = t.detach().to(f64);
  return {x.mean().item<double>(), x.std().item<double>(), x.min().item<double>(), x.max().item<double>()};
}
void expect_uniform(const Tensor& t, double bound) {
  Statistics s = of(t);
  EXPECT_GE(s.low, -bound);
  EXPECT_LE(s.high, bound);
  EXPECT_LT(s.low, -0.95 * bound);
  EXPECT_GT(s.high, 0.95 * bound);
  EXPECT_NEAR(s.mean, 0, 0.05 * bound);
  EXPECT_NEAR(s.deviation, bound / std::sqrt(3.0), 0.05 * bound);
}
void expect_normal(const Tensor& t, double mean, double deviation) {
  Statistics s = of(t);
  EXPECT_NEAR(s.mean, mean, 0.05 * deviation);
  EXPECT_NEAR(s.deviation, deviation, 0.05 * deviation);
  EXPECT_GT(s.high, mean + 2.5 * deviation);
}

TEST(Initialization, OfLayersIsPyTorchs) {
  manual_seed(3);
  nn::Linear linear(64, 300);
  expect_uniform(linear.weight, 1 / std::sqrt(64.0));
  expect_uniform(linear.bias, 1 / std::sqrt(64.0));
  nn::Conv2d conv(16, 200, 3, {.groups = 2});
  expect_uniform(conv.weight, 1 / std::sqrt(8.0 * 9));
  expect_uniform(conv.bias, 1 / std::sqrt(8.0 * 9));
  nn::ConvTranspose2d transposed(32, 64, 3);
  expect_uniform(transposed.weight, 1 / std::sqrt(64.0 * 9));
  expect_normal(nn::Embedding(500, 40).weight, 0, 1);
  nn::LSTM lstm(20, 50);
  for (const Tensor& weight : lstm.parameters()) expect_uniform(weight, 1 / std::sqrt(50.0));
  nn::MultiheadAttention attention(60, 4);
  expect_uniform(attention.in_proj_weight, std::sqrt(6.0 / (4 * 60)));
  EXPECT_EQ(of(attention.in_proj_bias).high, 0);
  EXPECT_EQ(of(attention.out_proj.bias).high, 0);
  expect_uniform(attention.out_proj.weight, 1 / std::sqrt(60.0));
  nn::BatchNorm2d norm(5);
  EXPECT_EQ(of(norm.weight).low, 1);
  EXPECT_EQ(of(norm.bias).high, 0);
  EXPECT_EQ(of(norm.running_var).low, 1);
  EXPECT_EQ(of((*nn::Embedding(5, 4, {.padding_idx = 1}).weight)[1]).high, 0);
}

TEST(Initialization, FunctionsDrawWhatTheySay) {
  manual_seed(4);
  Tensor w = empty({100, 50, 3});
  expect_uniform(nn::init::xavier_uniform_(w, 2), 2 * std::sqrt(6.0 / (150 + 300)));
  expect_normal(nn::init::xavier_normal_(w), 0, std::sqrt(2.0 / (150 + 300)));
  expect_uniform(nn::init::kaiming_uniform_(w, {.nonlinearity = "relu"}), std::sqrt(6.0 / 150));
  expect_normal(nn::init::kaiming_normal_(w, {.fan_out = true, .nonlinearity = "relu"}), 0, std::sqrt(2.0 / 300));
  expect_normal(nn::init::normal_(w, 3, 0.5), 3, 0.5);
  Statistics cut = of(nn::init::trunc_normal_(w, 1, 2, 0, 3));
  EXPECT_GE(cut.low, 0);
  EXPECT_LE(cut.high, 3);
  EXPECT_NEAR(cut.mean, 1.4133, 0.05);  // of a normal distribution (1, 2) cut to [0, 3]
  EXPECT_NEAR(nn::init::gain("leaky_relu", 0.2), std::sqrt(2 / 1.04), 1e-12);
  EXPECT_THROW(nn::init::gain("relus"), Error);
  EXPECT_THROW(nn::init::xavier_uniform_(empty({3})), Error);
}

}  // namespace

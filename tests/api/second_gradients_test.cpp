// First and second gradients of functions against those of real PyTorch (tests/record/record_gradients.py).
#include <gtest/gtest.h>
#include <tenon/tenon.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace {

using tenon::Tensor;

struct Case {
  const char* name;
  std::function<Tensor(const std::vector<Tensor>&)> function;
};

// Rows 0, 1, 1 and 2, 0, 3 of a table, put together and squared.
Tensor bag(const Tensor& table, int64_t mode, const Tensor& weights = {}) {
  Tensor rows = tenon::tensor<int64_t>({0, 1, 1, 2, 0, 3}), offsets = tenon::tensor<int64_t>({0, 3});
  return tenon::square(std::get<0>(tenon::embedding_bag(table, rows, offsets, false, mode, false, weights)));
}

const Case cases[] = {
    {"layer_norm",
     [](auto& x) {
       return tenon::layer_norm(x[0], {4, 3}, x[1], x[2]);
     }},
    {"layer_norm_plain", [](auto& x) { return tenon::layer_norm(x[0], 5); }},
    {"group_norm", [](auto& x) { return tenon::group_norm(x[0], 2, x[1], x[2]); }},
    {"batch_norm", [](auto& x) { return tenon::batch_norm(x[0], x[1], x[2], {}, {}, true, 0.1, 1e-5, true); }},
    {"batch_norm_eval",
     [](auto& x) {
       return tenon::batch_norm(x[0], x[1], x[2], tenon::zeros({3}, tenon::f64), tenon::full({3}, 2.0, tenon::f64),
                                false, 0.1, 1e-5, true);
     }},
    {"rms_norm", [](auto& x) { return tenon::rms_norm(x[0], 5, x[1]); }},
    {"attention", [](auto& x) { return tenon::scaled_dot_product_attention(x[0], x[1], x[2]); }},
    {"attention_causal", [](auto& x) { return tenon::scaled_dot_product_attention(x[0], x[1], x[2], {}, 0.0, true); }},
    {"mse_loss", [](auto& x) { return tenon::mse_loss(x[0], x[1]); }},
    {"smooth_l1_loss", [](auto& x) { return tenon::smooth_l1_loss(x[0], x[1]); }},
    {"huber_loss", [](auto& x) { return tenon::huber_loss(x[0], x[1], 2); }},
    {"cross_entropy",
     [](auto& x) {
       return tenon::cross_entropy_loss(x[0], tenon::tensor({1, 0, 2}).to(tenon::i64));
     }},
    {"max_pool2d", [](auto& x) { return tenon::max_pool2d(x[0] * x[0], 2); }},
    {"avg_pool2d", [](auto& x) { return tenon::avg_pool2d(x[0] * x[0], 2); }},
    {"conv2d", [](auto& x) { return tenon::conv2d(x[0], x[1], x[2], 2, 1); }},
    {"linear", [](auto& x) { return tenon::linear(x[0], x[1], x[2]); }},
    {"gelu", [](auto& x) { return tenon::gelu(x[0]); }},
    {"gelu_tanh", [](auto& x) { return tenon::gelu(x[0], "tanh"); }},
    {"silu", [](auto& x) { return tenon::silu(x[0]); }},
    {"softplus", [](auto& x) { return tenon::softplus(x[0]); }},
    {"logit", [](auto& x) { return tenon::logit(tenon::sigmoid(x[0])); }},
    {"softmax", [](auto& x) { return tenon::softmax(x[0], 1); }},
    {"norm", [](auto& x) { return tenon::linalg_vector_norm(x[0], 2, 1); }},
    {"cdist", [](auto& x) { return tenon::cdist(x[0], x[1]); }},
    {"cdist_of_order_3", [](auto& x) { return tenon::cdist(x[0], x[1], 3); }},
    {"pdist", [](auto& x) { return tenon::pdist(x[0]); }},
    {"pdist_of_order_1_5", [](auto& x) { return tenon::pdist(x[0], 1.5); }},
    {"grid_sample", [](auto& x) { return tenon::grid_sampler(x[0], tenon::tanh(x[1]), 0, 0, false); }},
    {"grid_sample_3d", [](auto& x) { return tenon::grid_sampler(x[0], tenon::tanh(x[1]), 0, 0, true); }},
    {"embedding_bag", [](auto& x) { return bag(x[0], 0); }},
    {"embedding_bag_mean", [](auto& x) { return bag(x[0], 1); }},
    {"embedding_bag_max", [](auto& x) { return bag(x[0], 2); }},
    {"embedding_bag_weighted", [](auto& x) { return bag(x[0], 0, x[1].reshape(-1)); }},
};

void expect_close(const Tensor& got, const Tensor& expected, const std::string& what) {
  ASSERT_TRUE(got.defined()) << what;
  ASSERT_TRUE(std::ranges::equal(got.sizes(), expected.sizes())) << what;
  std::vector<double> a = got.detach().contiguous().vector<double>(), b = expected.vector<double>();
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_LE(std::abs(a[i] - b[i]), 1e-7 + 1e-6 * std::abs(b[i]))
        << what << " at " << i << ": " << a[i] << ", expected " << b[i];
}

class SecondGradients : public testing::TestWithParam<Case> {};

TEST_P(SecondGradients, AreThoseOfPyTorch) {
  static const std::map<std::string, Tensor> recorded =
      tenon::load_tensors(std::string(TENON_TEST_DATA) + "/training/second_gradients.npz");
  auto get = [&](const std::string& what) { return recorded.at(GetParam().name + ("." + what)); };
  std::vector<Tensor> x, d;
  for (int i = 0; recorded.contains(GetParam().name + (".x" + std::to_string(i))); ++i) {
    x.push_back(get("x" + std::to_string(i)).clone().requires_grad_());
    d.push_back(get("d" + std::to_string(i)));
  }
  ASSERT_FALSE(x.empty());
  Tensor y = GetParam().function(x);
  expect_close(y, get("y"), "the result");
  std::vector<Tensor> first = tenon::grad({(get("c") * y).sum()}, x, {}, {.create_graph = true});
  Tensor total;
  for (std::size_t i = 0; i < x.size(); ++i) {
    expect_close(first[i], get("g" + std::to_string(i)), "gradient " + std::to_string(i));
    Tensor part = (d[i] * first[i]).sum();
    total = total ? total + part : part;
  }
  std::vector<Tensor> second = tenon::grad({total}, x, {}, {.allow_unused = true});
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::string h = "h" + std::to_string(i); recorded.contains(GetParam().name + ("." + h)))
      expect_close(second[i] ? second[i] : tenon::zeros_like(x[i]), get(h), "second gradient " + std::to_string(i));
}

INSTANTIATE_TEST_SUITE_P(Functions, SecondGradients, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace

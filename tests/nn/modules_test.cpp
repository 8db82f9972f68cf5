// Every layer and loss against real PyTorch: results, gradients of inputs and parameters, buffers afterwards.
#include "tests/nn/recorded.h"

namespace {

using namespace tenon;

/// A module with the call that the recording made, from the inputs to all results.
struct Made {
  nn::Module module;
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> call;
};

template <class M>
Made one(M m) {
  return {m, [m](const std::vector<Tensor>& x) { return std::vector<Tensor>{m(x[0])}; }};
}
template <class M>
Made two(M m) {
  return {m, [m](const std::vector<Tensor>& x) { return std::vector<Tensor>{m(x[0], x[1])}; }};
}
Made evaluated(Made made) {
  made.module.eval();
  return made;
}
Made lstm_of(nn::LSTM m) {
  return {m, [m](const std::vector<Tensor>& x) {
            auto [output, state] = m(x[0]);
            return std::vector<Tensor>{output, state.hidden, state.cell};
          }};
}
Made gru_of(nn::GRU m) {
  return {m, [m](const std::vector<Tensor>& x) {
            auto [output, hidden] = m(x[0]);
            return std::vector<Tensor>{output, hidden};
          }};
}
Made attention_of(nn::MultiheadAttention m, nn::AttentionArguments arguments = {}) {
  return {m, [m, arguments](const std::vector<Tensor>& x) {
            auto [output, weights] = m(x[0], x[1], x[2], arguments);
            return std::vector<Tensor>{output, weights};
          }};
}
Tensor padding() { return tensor({{0, 0, 0, 1}, {0, 1, 1, 1}}) > 0; }

struct Case {
  const char* name;
  std::function<Made()> make;
};

const Case cases[] = {
    {"linear", [] { return one(nn::Linear(4, 3)); }},
    {"linear_no_bias", [] { return one(nn::Linear(4, 3, false)); }},
    {"bilinear", [] { return two(nn::Bilinear(3, 4, 2)); }},
    {"embedding", [] { return one(nn::Embedding(6, 3, {.padding_idx = 2})); }},
    {"conv1d", [] { return one(nn::Conv1d(2, 4, 3, {.stride = 2, .padding = 1})); }},
    {"conv2d",
     [] {
       return one(nn::Conv2d(4, 6, {3, 2}, {.stride = {2, 1}, .padding = {1, 0}, .groups = 2}));
     }},
    {"conv3d", [] { return one(nn::Conv3d(2, 3, 2, {.dilation = 2, .bias = false})); }},
    {"conv_transpose1d",
     [] { return one(nn::ConvTranspose1d(3, 2, 3, {.stride = 2, .padding = 1, .output_padding = 1})); }},
    {"conv_transpose2d", [] { return one(nn::ConvTranspose2d(4, 2, 3, {.stride = 2, .groups = 2})); }},
    {"conv_transpose3d", [] { return one(nn::ConvTranspose3d(2, 3, 2)); }},
    {"batch_norm1d", [] { return one(nn::BatchNorm1d(3)); }},
    {"batch_norm2d", [] { return one(nn::BatchNorm2d(3, {.momentum = std::nullopt})); }},
    {"batch_norm3d_eval", [] { return evaluated(one(nn::BatchNorm3d(2))); }},
    {"batch_norm_untracked", [] { return one(nn::BatchNorm1d(3, {.affine = false, .track_running_stats = false})); }},
    {"layer_norm",
     [] {
       return one(nn::LayerNorm({4, 3}));
     }},
    {"layer_norm_plain", [] { return one(nn::LayerNorm(3, {.elementwise_affine = false})); }},
    {"group_norm", [] { return one(nn::GroupNorm(2, 4)); }},
    {"rms_norm", [] { return one(nn::RMSNorm(5)); }},
    {"max_pool1d", [] { return one(nn::MaxPool1d(2)); }},
    {"max_pool2d", [] { return one(nn::MaxPool2d(3, {.stride = 2, .padding = 1, .ceil_mode = true})); }},
    {"max_pool3d", [] { return one(nn::MaxPool3d(2, {.stride = 1, .dilation = 2})); }},
    {"avg_pool1d", [] { return one(nn::AvgPool1d(2)); }},
    {"avg_pool2d", [] { return one(nn::AvgPool2d(3, {.stride = 2, .padding = 1, .count_include_pad = false})); }},
    {"avg_pool3d", [] { return one(nn::AvgPool3d(2)); }},
    {"adaptive_avg_pool1d", [] { return one(nn::AdaptiveAvgPool1d(3)); }},
    {"adaptive_avg_pool2d", [] { return one(nn::AdaptiveAvgPool2d(2)); }},
    {"adaptive_avg_pool3d", [] { return one(nn::AdaptiveAvgPool3d(2)); }},
    {"adaptive_max_pool1d", [] { return one(nn::AdaptiveMaxPool1d(3)); }},
    {"adaptive_max_pool2d",
     [] {
       return one(nn::AdaptiveMaxPool2d({2, 3}));
     }},
    {"adaptive_max_pool3d", [] { return one(nn::AdaptiveMaxPool3d(2)); }},
    {"relu", [] { return one(nn::ReLU()); }},
    {"relu6", [] { return one(nn::ReLU6()); }},
    {"selu", [] { return one(nn::SELU()); }},
    {"gelu", [] { return one(nn::GELU()); }},
    {"silu", [] { return one(nn::SiLU()); }},
    {"mish", [] { return one(nn::Mish()); }},
    {"sigmoid", [] { return one(nn::Sigmoid()); }},
    {"log_sigmoid", [] { return one(nn::LogSigmoid()); }},
    {"tanh", [] { return one(nn::Tanh()); }},
    {"hardtanh", [] { return one(nn::Hardtanh()); }},
    {"hardswish", [] { return one(nn::Hardswish()); }},
    {"hardsigmoid", [] { return one(nn::Hardsigmoid()); }},
    {"softsign", [] { return one(nn::Softsign()); }},
    {"leaky_relu", [] { return one(nn::LeakyReLU(0.2)); }},
    {"elu", [] { return one(nn::ELU()); }},
    {"celu", [] { return one(nn::CELU(0.7)); }},
    {"softplus", [] { return one(nn::Softplus(2)); }},
    {"softshrink", [] { return one(nn::Softshrink()); }},
    {"hardshrink", [] { return one(nn::Hardshrink()); }},
    {"softmax", [] { return one(nn::Softmax(1)); }},
    {"log_softmax", [] { return one(nn::LogSoftmax(1)); }},
    {"glu", [] { return one(nn::GLU()); }},
    {"prelu", [] { return one(nn::PReLU(3)); }},
    {"flatten", [] { return one(nn::Flatten()); }},
    {"lstm", [] { return lstm_of(nn::LSTM(3, 4, {.num_layers = 2, .bidirectional = true})); }},
    {"lstm_batch_first", [] { return lstm_of(nn::LSTM(3, 4, {.bias = false, .batch_first = true})); }},
    {"gru", [] { return gru_of(nn::GRU(3, 4, {.num_layers = 2, .bidirectional = true})); }},
    {"gru_batch_first", [] { return gru_of(nn::GRU(3, 4, {.batch_first = true})); }},
    {"attention", [] { return attention_of(nn::MultiheadAttention(8, 2)); }},
    {"attention_padded",
     [] { return attention_of(nn::MultiheadAttention(8, 2, {.batch_first = true}), {.key_padding_mask = padding()}); }},
    {"attention_causal",
     [] {
       return attention_of(nn::MultiheadAttention(8, 4, {.batch_first = true}),
                           {.average_attn_weights = false, .is_causal = true});
     }},
    {"encoder_layer", [] { return one(nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 16, .dropout = 0})); }},
    {"encoder_layer_norm_first",
     [] {
       return one(nn::TransformerEncoderLayer(
           8, 2, {.dim_feedforward = 16, .dropout = 0, .gelu = true, .batch_first = true, .norm_first = true}));
     }},
    {"sequential", [] { return one(nn::Sequential(nn::Linear(4, 5), nn::Tanh(), nn::Linear(5, 2))); }},
    {"cross_entropy", [] { return two(nn::CrossEntropyLoss({.label_smoothing = 0.1})); }},
    {"cross_entropy_weighted",
     [] {
       return two(nn::CrossEntropyLoss(
           {.weight = tensor({0.5, 1.0, 2.0, 1.0}), .ignore_index = 3, .reduction = nn::Reduction::sum}));
     }},
    {"nll", [] { return two(nn::NLLLoss()); }},
    {"mse", [] { return two(nn::MSELoss()); }},
    {"l1", [] { return two(nn::L1Loss(nn::Reduction::none)); }},
    {"smooth_l1", [] { return two(nn::SmoothL1Loss(0.5)); }},
    {"huber", [] { return two(nn::HuberLoss(0.5, nn::Reduction::sum)); }},
    {"bce", [] { return two(nn::BCELoss()); }},
    {"bce_with_logits",
     [] {
       return two(nn::BCEWithLogitsLoss({.pos_weight = tensor({1.0, 2.0, 3.0, 4.0})}));
     }},
    {"kl_div", [] { return two(nn::KLDivLoss()); }},
};

class Modules : public testing::TestWithParam<Case> {};

TEST_P(Modules, DoWhatThoseOfPyTorchDo) {
  static const Tensors all = recorded("modules");
  // PyTorch's celu has its alpha and 1 / alpha in float32.
  double tolerance = GetParam().name == std::string("celu") ? 1e-7 : 1e-9;
  const Tensors own = below(all, GetParam().name + std::string("."));
  Made made = GetParam().make();
  made.module.to(f64);
  Tensors state = below(own, "state.");
  state.erase("pos_weight");  // a buffer there, an option here
  made.module.load_state_dict(state);
  std::vector<Tensor> x;
  for (int i = 0; own.contains("x" + std::to_string(i)); ++i) {
    x.push_back(own.at("x" + std::to_string(i)).clone());
    if (x.back().dtype() == f64) x.back().requires_grad_();
  }
  std::vector<Tensor> y = made.call(x);
  Tensor total;
  for (std::size_t i = 0; i < y.size(); ++i) {
    expect_close(y[i], own.at("y" + std::to_string(i)), "result " + std::to_string(i), tolerance);
    Tensor part = (y[i] * own.at("c" + std::to_string(i))).sum();
    total = total ? total + part : part;
  }
  EXPECT_FALSE(own.contains("y" + std::to_string(y.size())));
  total.backward();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (own.contains("gx" + std::to_string(i)))
      expect_close(x[i].grad(), own.at("gx" + std::to_string(i)), "the gradient of input " + std::to_string(i),
                   tolerance);
  Tensors gradients = below(own, "grad.");
  EXPECT_EQ(made.module.named_parameters().size(), gradients.size());
  for (const auto& [name, parameter] : made.module.named_parameters()) {
    ASSERT_TRUE(gradients.contains(name)) << name;
    expect_close(parameter.grad(), gradients.at(name), "the gradient of " + name);
  }
  Tensors after = below(own, "after.");
  for (const auto& [name, buffer] : made.module.named_buffers()) expect_close(buffer, after.at(name), name);
}

INSTANTIATE_TEST_SUITE_P(Layers, Modules, testing::ValuesIn(cases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace

// The same model, weights and data as in real PyTorch: the loss over 100 steps of each optimizer.
#include <tenon/optim.h>

#include "tests/nn/recorded.h"

namespace {

using namespace tenon;

struct Recurrent : nn::Module {
  nn::LSTM lstm = add("lstm", nn::LSTM(3, 8, {.batch_first = true}));
  nn::Linear out = add("out", nn::Linear(8, 4));
  Tensor operator()(const Tensor& x) const { return out(lstm(x).output.select(1, -1)); }
};

struct Transformer : nn::Module {
  nn::Embedding embedding = add("embedding", nn::Embedding(4, 8));
  nn::ModuleList<nn::TransformerEncoderLayer> layers;
  nn::Linear out = nn::Linear(8, 4);
  Transformer() {
    for (int i = 0; i < 2; ++i)
      layers.push_back(nn::TransformerEncoderLayer(
          8, 2, {.dim_feedforward = 16, .dropout = 0, .gelu = true, .batch_first = true, .norm_first = true}));
    add("layers", layers);
    add("out", out);
  }
  Tensor operator()(const Tensor& ids) const {
    Tensor x = embedding(ids);
    for (const auto& layer : layers) x = layer(x, {}, {}, true);
    return out(x).transpose(1, 2);
  }
};

struct Model {
  nn::Module module;
  std::function<Tensor(const Tensor&)> call;
};
template <class M>
Model model(M m) {
  return {m, m};
}
Model make(const std::string& name) {
  if (name == "mlp") return model(nn::Sequential(nn::Linear(6, 16), nn::ReLU(), nn::Linear(16, 4)));
  if (name == "cnn")
    return model(nn::Sequential(nn::Conv2d(1, 4, 3, {.padding = 1}), nn::BatchNorm2d(4), nn::ReLU(), nn::MaxPool2d(2),
                                nn::Flatten(), nn::Linear(64, 4)));
  if (name == "lstm") return model(Recurrent());
  return model(Transformer());
}
std::unique_ptr<optim::Optimizer> optimizer(const std::string& name, std::vector<Tensor> parameters) {
  if (name == "sgd") return std::make_unique<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
  if (name == "adam") return std::make_unique<optim::Adam>(parameters, optim::AdamOptions{.lr = 0.003});
  if (name == "adamw") return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.003});
  if (name == "rmsprop") return std::make_unique<optim::RMSprop>(parameters, optim::RMSpropOptions{.lr = 0.001});
  return std::make_unique<optim::Adagrad>(parameters, optim::AdagradOptions{.lr = 0.01});
}

class Training : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

// In float64 the losses are PyTorch's; in float32 both are as far from them as float32 allows.
TEST_P(Training, LosesAsMuchAsInPyTorch) {
  static const Tensors all = recorded("trainings");
  auto [name, by] = GetParam();
  const Tensors own = below(all, name + std::string("."));
  for (DType dtype : {f64, f32}) {
    Model m = make(name);
    m.module.load_state_dict(below(own, "state."));
    m.module.to(dtype);
    Tensor x = own.at("x"), y = own.at("y");
    if (x.dtype() == f32) x = x.to(dtype);
    auto step = optimizer(by, m.module.parameters());
    std::vector<double> exact = own.at(by + std::string(".float64")).vector<double>(),
                        theirs = own.at(by + std::string(".float32")).vector<double>();
    double most = 0;
    for (std::size_t i = 0; i < exact.size(); ++i) most = std::max(most, std::abs(theirs[i] - exact[i]));
    for (int i = 0; i < 100; ++i) {
      step->zero_grad();
      Tensor loss = nn::CrossEntropyLoss()(m.call(x), y);
      loss.backward();
      step->step();
      if (i != 0 && i != 9 && i != 99) continue;
      double allowed = dtype == f64 ? 1e-7 : 1e-6 + 20 * most;
      EXPECT_NEAR(loss.item<double>(), exact[static_cast<std::size_t>(i)], allowed) << "after " << i + 1 << " steps";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Training,
                         testing::Combine(testing::Values("mlp", "cnn", "lstm", "transformer"),
                                          testing::Values("sgd", "adam", "adamw", "rmsprop", "adagrad")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
                         });

}  // namespace

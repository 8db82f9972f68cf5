// Models written in C++ as .pt2 files that PyTorch opens, with inputs and results to compare.
//   from_cpp FOLDER
#include <tenon/nn.h>
#include <tenon/tenon.h>

#include <iostream>

namespace nn = tenon::nn;
using tenon::Tensor;

struct Digits : nn::Module {
  nn::Conv2d conv = add("conv", nn::Conv2d(1, 4, 3, {.padding = 1}));
  nn::BatchNorm2d norm = add("norm", nn::BatchNorm2d(4));
  nn::Linear out = add("out", nn::Linear(4 * 16, 10));
  Tensor operator()(const Tensor& x) const { return out(max_pool2d(relu(norm(conv(x))), 2).flatten(1)); }
};

struct Language : nn::Module {
  nn::Embedding embedding = add("embedding", nn::Embedding(16, 8));
  nn::TransformerEncoderLayer layer =
      add("layer",
          nn::TransformerEncoderLayer(8, 2, {.dim_feedforward = 16, .dropout = 0, .gelu = true, .batch_first = true}));
  nn::GRU gru = add("gru", nn::GRU(8, 8, {.batch_first = true}));
  nn::Linear out = add("out", nn::Linear(8, 16));
  Tensor operator()(const Tensor& ids) const { return out(gru(layer(embedding(ids), {}, {}, true)).output); }
};

template <class M>
void write(const std::string& path, const M& model, const Tensor& x) {
  tenon::save(nn::export_program(model, {x}, {"x"}), path + ".pt2");
  tenon::NoGradGuard off;
  tenon::save_tensors({{"x", x}, {"y", model(x)}}, path + ".npz");
}

int main(int argc, char** argv) try {
  std::string folder = argc > 1 ? argv[1] : ".";
  tenon::manual_seed(2);
  Digits digits;
  digits.eval();
  write(folder + "/digits", digits, tenon::randn({3, 1, 8, 8}));
  digits.train();
  write(folder + "/digits_train", digits, tenon::randn({3, 1, 8, 8}));
  Language language;
  language.eval();
  write(folder + "/language", language, tenon::randint(0, 16, {2, 5}));
} catch (const tenon::Error& e) {
  std::cerr << "from_cpp: " << e.what() << "\n";
  return 1;
}

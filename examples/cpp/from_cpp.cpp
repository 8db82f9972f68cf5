// Models written in C++ as .pt2 files that PyTorch opens, with inputs of several sizes and results to compare.
//   from_cpp FOLDER
#include <tenon/nn.h>
#include <tenon/tenon.h>

#include <iostream>

namespace nn = tenon::nn;
using tenon::Dim;
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

// A block that is called twice, with a constant, a buffer that is assigned, and code that depends on sizes.
struct Block : nn::Module {
  nn::Linear inner = add("inner", nn::Linear(6, 6));
  Tensor scale = add_constant("scale", tenon::linspace(0.5, 1.5, 6));
  mutable nn::Parameter seen = add_buffer("seen", tenon::zeros({}));
  Tensor operator()(const Tensor& x) const {
    nn::Scope scope(*this, x);
    seen.set(*seen + x.size(0));
    tenon::NoGradGuard off;
    Tensor shift = x.mean(0) * 0.1;
    tenon::EnableGradGuard on;
    return scope.result(relu(inner(x)) * scale + shift);
  }
};
struct Sizes : nn::Module {
  Block block = add("block", Block());
  nn::Linear out = add("out", nn::Linear(12, 3));
  Tensor operator()(const Tensor& x, const Tensor& y) const {
    Tensor pairs = block(block(y)).view({x.size(0), 2 * x.size(1)});  // y has two rows for each of x
    return out(pairs) / x.size(0) + tenon::tensor({1.0f, 2.0f, 3.0f});
  }
};

template <class M>
void write(const std::string& path, const M& model, const Tensor& x, const std::vector<Tensor>& more = {},
           const tenon::DynamicShapes& shapes = {}) {
  tenon::save(nn::export_program(model, {x}, {.input_names = {"x"}, .dynamic_shapes = shapes}), path + ".pt2");
  tenon::NoGradGuard off;
  std::map<std::string, Tensor> arrays = {{"x.0", x}, {"result.0", model(x)}};
  for (const Tensor& other : more) {
    std::string number = std::to_string(arrays.size() / 2);
    arrays["x." + number] = other;
    arrays["result." + number] = model(other);
  }
  tenon::save_tensors(arrays, path + ".npz");
}

int main(int argc, char** argv) try {
  std::string folder = argc > 1 ? argv[1] : ".";
  tenon::manual_seed(2);
  Digits digits;
  digits.eval();
  auto images = [](int64_t n) { return tenon::randn({n, 1, 8, 8}); };
  write(folder + "/digits", digits, images(3), {images(2), images(9)}, {{"x", {{0, Dim("batch", {.max = 64})}}}});
  digits.train();
  write(folder + "/digits_train", digits, images(3), {}, {{"x", {{0, Dim::automatic()}}}});
  Language language;
  language.eval();
  auto text = [](int64_t n, int64_t length) { return tenon::randint(0, 16, {n, length}); };
  write(folder + "/language", language, text(2, 5), {text(3, 5), text(7, 5)}, {{"x", {{0, Dim("batch")}}}});

  Sizes sizes;
  Dim n("n", {.min = 2, .max = 100});
  auto rows = [](int64_t count) { return tenon::randn({count, 6}); };
  tenon::save(nn::export_program(sizes, {rows(3), rows(6)},
                                 {.input_names = {"x", "y"},
                                  .dynamic_shapes = {{"x", {{0, n}}}, {"y", {{0, 2 * n}}}},
                                  .preserve_module_call_signature = {"block", "out"}}),
              folder + "/sizes.pt2");
  tenon::NoGradGuard off;
  std::map<std::string, Tensor> arrays;
  for (int64_t count : {3, 2, 11}) {
    std::string number = std::to_string(arrays.size() / 3);
    Tensor x = rows(count), y = rows(2 * count);
    arrays.insert({{"x." + number, x}, {"y." + number, y}, {"result." + number, sizes(x, y)}});
  }
  tenon::save_tensors(arrays, folder + "/sizes.npz");
} catch (const tenon::Error& e) {
  std::cerr << "from_cpp: " << e.what() << "\n";
  return 1;
}

#include <gtest/gtest.h>
#include <tenon/nn.h>
#include <tenon/tenon.h>

namespace {

using namespace tenon;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::call);
    return e.what();
  }
  return "no error";
}

struct Block : nn::Module {
  nn::Linear fc;
  nn::Dropout drop = add("drop", nn::Dropout(0.5));
  explicit Block(std::int64_t width) : fc(add("fc", nn::Linear(width, width))) {}
  Tensor operator()(const Tensor& x) const { return drop(relu(fc(x))); }
};

struct Net : nn::Module {
  nn::ModuleList<Block> blocks = add("blocks", nn::ModuleList<Block>{Block(4), Block(4)});
  nn::ModuleDict<nn::Linear> heads =
      add("heads", nn::ModuleDict<nn::Linear>{{"a", nn::Linear(4, 2)}, {"b", nn::Linear(4, 3)}});
  nn::BatchNorm1d norm = add("norm", nn::BatchNorm1d(4));
  nn::Parameter scale = add_parameter("scale", ones({}));
  Tensor forward(const Tensor& x) const {
    Tensor y = x;
    for (const Block& block : blocks) y = block(y);
    return heads["a"](norm(y)) * scale;
  }
};

TEST(AuthoredModule, NamesItsPartsAsPyTorchDoes) {
  Net net;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : net.named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"scale", "blocks.0.fc.weight", "blocks.0.fc.bias", "blocks.1.fc.weight",
                                             "blocks.1.fc.bias", "heads.a.weight", "heads.a.bias", "heads.b.weight",
                                             "heads.b.bias", "norm.weight", "norm.bias"}));
  EXPECT_EQ(net.named_modules()[2], "blocks.0");
  EXPECT_EQ(net.named_buffers().size(), 3u);
  EXPECT_EQ(net.state_dict().size(), 14u);
}

TEST(AuthoredModule, ModesAndCopiesAreShared) {
  Net net;
  Net same = net;
  net.eval();
  EXPECT_FALSE(same.blocks[0].drop.is_training());
  Tensor x = ones({3, 4});
  EXPECT_TRUE(equal(net.forward(x), net.forward(x)));
  net.train();
  EXPECT_FALSE(equal(net.forward(x), net.forward(x)));
  NoGradGuard off;
  net.scale->fill_(0);
  EXPECT_EQ(same.forward(x).sum().item<float>(), 0.0f);
}

TEST(AuthoredModule, LoadsWhatItSavesAndSaysWhatDoesNotFit) {
  Net a, b;
  b.load_state_dict(a.state_dict());
  a.eval(), b.eval();
  Tensor x = randn({2, 4});
  EXPECT_TRUE(equal(a.forward(x), b.forward(x)));
  auto state = a.state_dict();
  state.erase("scale");
  EXPECT_EQ(error_of([&] { b.load_state_dict(state); }), "load_state_dict: 'scale' is missing");
  b.load_state_dict(state, false);
  state["scale"] = ones({2});
  EXPECT_EQ(error_of([&] { b.load_state_dict(state); }), "load_state_dict: 'scale': expected f32[], got f32[2]");
  state["scale"] = ones({});
  state["more"] = ones({});
  EXPECT_EQ(error_of([&] { b.load_state_dict(state); }), "load_state_dict: the module has nothing called 'more'");
}

TEST(AuthoredModule, AWrongPartIsAnError) {
  struct Twice : nn::Module {
    Twice() {
      add("a", nn::Linear(1, 1));
      add("a", nn::Linear(1, 1));
    }
  };
  EXPECT_EQ(error_of([] { Twice(); }), "the module already has something called 'a'");
  EXPECT_NE(error_of([] { nn::Conv2d(3, 4, 3, {.groups = 2}); }).find("expected a divisor"), std::string::npos);
  EXPECT_NE(error_of([] { nn::Dropout(1.5); }).find("expected a probability"), std::string::npos);
  EXPECT_NE(error_of([] { nn::MultiheadAttention(7, 2); }).find("does not divide"), std::string::npos);
  EXPECT_NE(error_of([] {
              nn::BatchNorm2d(3)(zeros({2, 3}));
            }).find("expected an input of 4 dimensions"),
            std::string::npos);
  EXPECT_NE(error_of([] { nn::LSTM(3, 4)(zeros({2, 3})); }).find("three dimensions"), std::string::npos);
}

TEST(AuthoredModule, TiedParametersCountOnce) {
  struct Tied : nn::Module {
    nn::Linear a = add("a", nn::Linear(3, 3)), b = add("b", nn::Linear(a));
  } tied;
  EXPECT_EQ(tied.parameters().size(), 2u);
  EXPECT_EQ(tied.state_dict().size(), 4u);
}

TEST(AuthoredModule, IsConvertedAndFrozen) {
  Net net;
  net.to(f64);
  EXPECT_EQ(net.blocks[0].fc.weight->dtype(), f64);
  EXPECT_EQ(net.norm.num_batches_tracked->dtype(), i64);
  net.forward(ones({2, 4}, f64)).sum().backward();
  EXPECT_TRUE(net.scale->grad().defined());
  net.zero_grad();
  EXPECT_FALSE(net.scale->grad().defined());
  net.requires_grad_(false);
  EXPECT_FALSE(net.forward(ones({2, 4}, f64)).requires_grad());
}

}  // namespace

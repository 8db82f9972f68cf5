#include <gtest/gtest.h>
#include <tenon/tenon.h>

#include <cmath>
#include <thread>

namespace {

using tenon::GradMode;
using tenon::NoGradGuard;
using tenon::Tensor;

std::vector<float> numbers(const Tensor& t) { return t.detach().contiguous().vector<float>(); }
using Floats = std::vector<float>;

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const tenon::Error& e) {
    EXPECT_EQ(e.kind(), tenon::ErrorKind::call);
    return e.what();
  }
  return "no error";
}

Tensor leaf(std::initializer_list<float> values) { return tenon::tensor(values).requires_grad_(); }

TEST(Autograd, GradientsOfLeavesAddUp) {
  Tensor x = leaf({1, 2, 3}), w = leaf({4, 5, 6});
  (x * w + x.exp()).sum().backward();
  EXPECT_EQ(numbers(w.grad()), (Floats{1, 2, 3}));
  EXPECT_FLOAT_EQ(x.grad().span<float>()[0], 4 + std::exp(1.0f));
  (x * w).sum().backward();
  EXPECT_EQ(numbers(w.grad()), (Floats{2, 4, 6}));
  w.set_grad({});
  EXPECT_FALSE(w.grad().defined());
}

TEST(Autograd, BroadcastingAndDtypesAreUndone) {
  Tensor x = leaf({1, 2, 3}), s = tenon::scalar(2.0f).requires_grad_();
  Tensor half = tenon::tensor({1.0, 1.0, 1.0}).requires_grad_();
  Tensor y = tenon::ones({4, 3}) * x * s + half;
  EXPECT_EQ(y.dtype(), tenon::f64);
  y.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{8, 8, 8}));
  EXPECT_EQ(s.grad().item<float>(), 24.0f);
  EXPECT_EQ(x.grad().dtype(), tenon::f32);
  EXPECT_EQ(half.grad().vector<double>(), (std::vector<double>{4, 4, 4}));
}

TEST(Autograd, ATensorKnowsWhatItIs) {
  Tensor x = leaf({1, 2});
  Tensor y = x * 2, z = y.detach();
  EXPECT_TRUE(x.is_leaf());
  EXPECT_TRUE(y.requires_grad());
  EXPECT_FALSE(y.is_leaf());
  EXPECT_EQ(y.grad_fn(), "MulBackward0");
  EXPECT_FALSE(z.requires_grad());
  EXPECT_EQ(z.raw_data(), y.raw_data());
  EXPECT_FALSE((x > 1).requires_grad());
  EXPECT_FALSE(x.argmax().requires_grad());
  EXPECT_EQ(to_string(x), "tensor([1., 2.], requires_grad=True)");
  EXPECT_EQ(to_string(y), "tensor([2., 4.], grad_fn=<MulBackward0>)");
  EXPECT_NE(error_of([&] { tenon::tensor({1, 2}).requires_grad_(); }).find("floating point"), std::string::npos);
  EXPECT_NE(error_of([&] { y.requires_grad_(false); }).find("detach()"), std::string::npos);
}

TEST(Autograd, GuardsSwitchItOffAndOn) {
  Tensor x = leaf({1, 2});
  {
    NoGradGuard off;
    EXPECT_FALSE((x * 2).requires_grad());
    EXPECT_FALSE(GradMode::is_enabled());
    tenon::EnableGradGuard on;
    EXPECT_TRUE((x * 2).requires_grad());
  }
  EXPECT_TRUE(GradMode::is_enabled());
}

TEST(Autograd, GradGivesWhatIsAskedForAndLeavesTheRest) {
  Tensor x = leaf({1, 2}), w = leaf({3, 4});
  Tensor y = x * w, z = (y * y).sum();
  std::vector<Tensor> g = tenon::grad({z}, {x, y}, {}, {.retain_graph = true});
  EXPECT_EQ(numbers(g[0]), (Floats{2 * 3 * 3, 2 * 8 * 4}));
  EXPECT_EQ(numbers(g[1]), (Floats{6, 16}));
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(w.grad().defined());
  g = tenon::grad({y}, {w}, {tenon::tensor({1.0f, 10.0f})});
  EXPECT_EQ(numbers(g[0]), (Floats{1, 20}));
  Tensor unused = leaf({1});
  Tensor again = (x * 2).sum();
  EXPECT_NE(error_of([&] {
              tenon::grad({again}, {unused}, {}, {.retain_graph = true});
            }).find("appears to not have been used in the graph"),
            std::string::npos);
  EXPECT_FALSE(tenon::grad({again}, {unused}, {}, {.allow_unused = true})[0].defined());
}

TEST(Autograd, GradientsCanBeDifferentiatedAgain) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = (x * x * x).sum();
  Tensor first = tenon::grad({y}, {x}, {}, {.create_graph = true})[0];
  EXPECT_EQ(numbers(first), (Floats{3, 12, 27}));
  Tensor second = tenon::grad({first.sum()}, {x}, {}, {.create_graph = true})[0];
  EXPECT_EQ(numbers(second), (Floats{6, 12, 18}));
  EXPECT_EQ(numbers(tenon::grad({second.sum()}, {x})[0]), (Floats{6, 6, 6}));
  Tensor e = x.exp().sum();  // its gradient reads its result
  Tensor ge = tenon::grad({e}, {x}, {}, {.create_graph = true})[0];
  EXPECT_FLOAT_EQ(tenon::grad({ge.sum()}, {x})[0].span<float>()[1], std::exp(2.0f));
}

TEST(Autograd, ASecondWalkNeedsTheGraphToBeRetained) {
  Tensor x = leaf({1, 2});
  Tensor y = (x * x).sum();
  y.backward({}, true);
  y.backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{4, 8}));
  EXPECT_NE(error_of([&] { y.backward(); }).find("Trying to backward through the graph a second time"),
            std::string::npos);
  EXPECT_NE(error_of([&] { (x * x).backward(); }).find("grad can be implicitly created only for scalar outputs"),
            std::string::npos);
  EXPECT_NE(error_of([&] { tenon::ones({1}).backward(); }).find("does not require grad and does not have a grad_fn"),
            std::string::npos);
  EXPECT_NE(error_of([&] { (x * x).backward(tenon::ones({3})); }).find("Mismatch in shape"), std::string::npos);
}

TEST(Autograd, ASavedValueThatWasOverwrittenIsFound) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = x * 1, z = y * y;
  y.add_(1);
  EXPECT_NE(error_of([&] {
              z.sum().backward();
            }).find("one of the variables needed for gradient computation has been modified by an inplace operation"),
            std::string::npos);
  // What is not needed may be written: the gradient of a sum reads nothing.
  Tensor a = x * 1, b = a + a;
  a.add_(1);
  b.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{2, 2, 2}));
  // A result that is needed counts too, also when a view of it is written.
  Tensor e = x.exp(), part = e.slice(0, 0, 1);
  part.mul_(2);
  EXPECT_NE(error_of([&] { (e.sum() * 1).backward(); }).find("modified by an inplace operation"), std::string::npos);
}

TEST(Autograd, WritesCarryTheirHistory) {
  Tensor x = leaf({1, 2, 3});
  Tensor y = x * 2;
  y.mul_(x);     // 2 x^2: reads what it overwrites
  y.add_(x, 3);  // + 3 x
  y.sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{7, 11, 15}));
  EXPECT_NE(
      error_of([&] { x.add_(1); }).find("a leaf Variable that requires grad is being used in an in-place operation"),
      std::string::npos);
  EXPECT_NE(error_of([&] {
              x[0].add_(1);
            }).find("a view of a leaf Variable that requires grad is being used in an in-place operation"),
            std::string::npos);
  NoGradGuard off;
  x.add_(1);
  EXPECT_EQ(numbers(x), (Floats{2, 3, 4}));
}

TEST(Autograd, AWriteToAViewIsAWriteToItsBase) {
  Tensor x = leaf({1, 2, 3, 4});
  Tensor y = (x * 2).view({2, 2});
  Tensor other = y.t();  // made before the write, sees it
  y[0].mul_(10);         // 20 x on the first row
  (other * other).sum().backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{2 * 400 * 1, 2 * 400 * 2, 8 * 3, 8 * 4}));

  Tensor w = leaf({5, 6});
  Tensor out = tenon::zeros({2, 2});
  out[1].copy_(w * w);  // a base that wanted no gradient gets one
  EXPECT_TRUE(out.requires_grad());
  out.sum().backward();
  EXPECT_EQ(numbers(w.grad()), (Floats{10, 12}));
}

TEST(Autograd, HooksSeeAndChangeGradients) {
  Tensor x = leaf({1, 2});
  Tensor y = x * 3;
  Floats seen;
  y.register_hook([&](const Tensor& grad) {
    seen = numbers(grad);
    return Tensor();
  });
  std::int64_t doubled = x.register_hook([](const Tensor& grad) { return grad * 2; });
  int after = 0;
  x.register_post_accumulate_grad_hook([&](const Tensor& leaf) { after += leaf.grad().defined(); });
  y.retain_grad();
  (y * y).sum().backward();
  EXPECT_EQ(seen, (Floats{6, 12}));
  EXPECT_EQ(numbers(y.grad()), (Floats{6, 12}));
  EXPECT_EQ(numbers(x.grad()), (Floats{36, 72}));
  EXPECT_EQ(after, 1);
  EXPECT_TRUE(x.remove_hook(doubled));
  EXPECT_FALSE(x.remove_hook(doubled));
  EXPECT_EQ(numbers(tenon::grad({(x * 3).sum()}, {x})[0]), (Floats{3, 3}));
}

struct Cube {
  static std::vector<Tensor> forward(tenon::FunctionContext& context, const std::vector<Tensor>& inputs) {
    context.save_for_backward({inputs[0]});
    return {inputs[0] * inputs[0] * inputs[0]};
  }
  static std::vector<Tensor> backward(tenon::FunctionContext& context, const std::vector<Tensor>& grads) {
    Tensor x = context.saved()[0];
    return {grads[0] * 3 * x * x};
  }
};

struct RoundThrough {  // forward rounds, backward does as if it had not
  static std::vector<Tensor> forward(tenon::FunctionContext&, const std::vector<Tensor>& inputs) {
    return {inputs[0].round()};
  }
  static std::vector<Tensor> backward(tenon::FunctionContext&, const std::vector<Tensor>& grads) { return grads; }
};

TEST(Autograd, FunctionsMayHaveGradientsOfTheirOwn) {
  Tensor x = leaf({1, 2});
  Tensor y = tenon::apply<Cube>({x})[0];
  EXPECT_NE(y.grad_fn().find("Cube"), std::string::npos);
  Tensor g = tenon::grad({y.sum()}, {x}, {}, {.create_graph = true})[0];
  EXPECT_EQ(numbers(g), (Floats{3, 12}));
  EXPECT_EQ(numbers(tenon::grad({g.sum()}, {x})[0]), (Floats{6, 12}));
  Tensor r = tenon::apply<RoundThrough>({x * 0.3})[0];
  EXPECT_EQ(numbers(r), (Floats{0, 1}));
  r.sum().backward();
  EXPECT_FLOAT_EQ(x.grad().span<float>()[0], 0.3f);
  NoGradGuard off;
  EXPECT_FALSE(tenon::apply<Cube>({x})[0].requires_grad());
}

struct Flattened {  // a view of what it is given
  static std::vector<Tensor> forward(tenon::FunctionContext&, const std::vector<Tensor>& inputs) {
    return {inputs[0].view(-1)};
  }
  static std::vector<Tensor> backward(tenon::FunctionContext&, const std::vector<Tensor>& grads) {
    return {grads[0].view({2, 2}) * 10};
  }
};

TEST(Autograd, AViewThatAFunctionGivesHasTheFunctionsGradient) {
  Tensor x = tenon::tensor({{1.0f, 2.0f}, {3.0f, 4.0f}}).requires_grad_(), base = x * 1;
  Tensor y = tenon::apply<Flattened>({base})[0];
  EXPECT_EQ(y.raw_data(), base.raw_data());
  (y * y).sum().backward();
  EXPECT_EQ(numbers(x.grad().flatten()), (Floats{20, 40, 60, 80}));
  EXPECT_NE(error_of([&] { y.mul_(2); }).find("gave is a view and is being modified inplace"), std::string::npos)
      << error_of([&] { y.mul_(2); });
}

struct Counted {  // backward writes what forward kept
  static std::vector<Tensor> forward(tenon::FunctionContext& context, const std::vector<Tensor>& inputs) {
    context.save_for_backward({inputs[1]});
    return {inputs[0] * 2};
  }
  static std::vector<Tensor> backward(tenon::FunctionContext& context, const std::vector<Tensor>& grads) {
    context.saved()[0].add_(1);
    return {grads[0] * 2, {}};
  }
};

TEST(Autograd, AFunctionMayWriteWhatItKeptAndIsToldWhenItReadsItAgain) {
  Tensor x = leaf({1, 2}), count = tenon::zeros({1});
  Tensor y = tenon::apply<Counted>({x, count})[0].sum();
  EXPECT_EQ(numbers(count), (Floats{0}));
  y.backward({}, true);
  EXPECT_EQ(numbers(count), (Floats{1}));
  EXPECT_EQ(numbers(x.grad()), (Floats{2, 2}));
  EXPECT_NE(error_of([&] { y.backward(); }).find("has been modified by an inplace operation"), std::string::npos);
}

TEST(Autograd, LayersHaveGradients) {
  tenon::manual_seed(1);
  Tensor x = tenon::randn({2, 3, 8, 8}).requires_grad_(), w = tenon::randn({4, 3, 3, 3}).requires_grad_();
  Tensor gamma = tenon::ones({4}).requires_grad_(), beta = tenon::zeros({4}).requires_grad_();
  Tensor y = tenon::conv2d(x, w, {}, 1, 1);
  y = tenon::batch_norm(y, gamma, beta, {}, {}, true, 0.1, 1e-5, true).relu();
  y = tenon::max_pool2d(y, 2);
  Tensor loss = tenon::cross_entropy_loss(y.flatten(1), tenon::tensor({3, 5}).to(tenon::i64));
  loss.backward();
  auto at = [&](const Tensor& t, double h) {  // the loss with one element of t moved
    NoGradGuard off;
    Tensor moved = t.clone();
    moved.flatten().slice(0, 7, 8).add_(h);
    Tensor z =
        tenon::conv2d(t.raw_data() == x.raw_data() ? moved : x, t.raw_data() == w.raw_data() ? moved : w, {}, 1, 1);
    z = tenon::batch_norm(z, gamma, beta, {}, {}, true, 0.1, 1e-5, true).relu();
    return tenon::cross_entropy_loss(tenon::max_pool2d(z, 2).flatten(1), tenon::tensor({3, 5}).to(tenon::i64))
        .item<double>();
  };
  for (const Tensor& t : {x, w}) {
    double slope = (at(t, 1e-2) - at(t, -1e-2)) / 2e-2;
    EXPECT_NEAR(t.grad().flatten()[7].item<double>(), slope, 5e-3);
  }
  EXPECT_EQ(gamma.grad().numel(), 4);
}

TEST(Autograd, LongHistoriesNeedNoDeepStack) {
  Tensor x = leaf({1});
  Tensor y = x;
  for (int i = 0; i < 200000; ++i) y = y + 0;
  y.backward();
  EXPECT_EQ(numbers(x.grad()), (Floats{1}));
}

TEST(Autograd, EightThreadsShareALeaf) {
  Tensor w = leaf({2});
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) (w * w).sum().backward();
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(numbers(w.grad()), (Floats{8 * 50 * 4}));
}

}  // namespace

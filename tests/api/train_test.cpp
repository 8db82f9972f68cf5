// Training by the public interface: losses and optimizers as functions, options, saving and going on.
#include <gtest/gtest.h>
#include <tenon/tenon.h>

#include <cmath>
#include <thread>

namespace {

using namespace tenon;
using Tensors = std::vector<Tensor>;

// Two outputs of one weight: w * x, and its square.
ExportedProgram two_outputs(DType dtype = f32) {
  Tensor w = tensor({2.0f, 3.0f}).to(dtype).requires_grad_(), b = zeros({2}, dtype).requires_grad_();
  auto forward = [&](const Tensors& in) { return Tensors{in[0] * w + b, (in[0] * w).square()}; };
  return export_program(
      forward, {ones({3, 2}, dtype)},
      {.input_names = {"x"}, .dynamic_shapes = {{"x", {{0, Dim("n")}}}}, .parameters = {{"w", w}, {"b", b}}});
}

Tensor batch(int64_t n) { return (arange(n * 2) / 4 - 0.5).to(f32).view({n, 2}); }

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) { return e.what(); }
  return "no error";
}

TEST(PublicTraining, ALossIsAFunctionOfAllOutputsAndTargets) {
  Loss loss([](const Tensors& out,
               const Tensors& target) { return mse_loss(out[0], target[0]) + 0.5 * out[1].mean() * target[1].mean(); },
            {zeros({3, 2}), zeros({3})});
  for (bool compile : {true, false}) {
    TrainingStep step = make_training_step(two_outputs(), loss, "sgd,lr=0.1", {.compile = compile});
    EXPECT_EQ(step.compiled(), compile);
    Tensor w = tensor({2.0f, 3.0f}).requires_grad_(), b = zeros({2}).requires_grad_();
    for (int64_t n : {3, 5}) {
      Tensor x = batch(n), t = ones({n, 2}), scale = full({n}, 2.0);
      Tensor expected = mse_loss(x * w + b, t) + 0.5 * (x * w).square().mean() * scale.mean();
      w.set_grad({}), b.set_grad({});
      expected.backward();
      EXPECT_NEAR(step(x, t, scale).item<double>(), expected.item<double>(), 1e-5);
      NoGradGuard off;
      w -= w.grad() * 0.1;
      b -= b.grad() * 0.1;
      EXPECT_TRUE(allclose(step.get("w"), w, 1e-5, 1e-6)) << step.get("w") << w;
    }
    EXPECT_EQ(step.updates(), 2);
  }
}

TEST(PublicTraining, AnOptimizerIsAFunctionOfOneParameter) {
  Optimizer momentum(
      [](ParameterUpdate& p) {
        p.slots[0] = p.slots[0] * 0.9 + p.gradient;
        p.value = p.value - p.slots[0] * p.lr.to(f32);
      },
      0.05, 0, {{"momentum_buffer"}});
  Loss loss([](const Tensors& out, const Tensors& t) { return mse_loss(out[0], t[0]); }, {zeros({3, 2})});
  TrainingStep own = make_training_step(two_outputs(), loss, momentum);
  TrainingStep theirs = make_training_step(two_outputs(), loss, "sgd,lr=0.05,momentum=0.9");
  for (int i = 0; i < 5; ++i) {
    own(batch(4), ones({4, 2}));
    theirs(batch(4), ones({4, 2}));
  }
  EXPECT_TRUE(allclose(own.get("w"), theirs.get("w"), 1e-6, 1e-7));
  EXPECT_TRUE(own.get("optimizer.momentum_buffer.w").defined());
  Optimizer wrong([](ParameterUpdate& p) { p.value = p.value.sum(); }, 0.1);
  EXPECT_NE(error_of([&] {
              make_training_step(two_outputs(), loss, wrong);
            }).find("a parameter's new value: expected f32[2]"),
            std::string::npos);
}

TEST(PublicTraining, AccumulationFreezingAndGroups) {
  Loss loss([](const Tensors& out, const Tensors& t) { return mse_loss(out[0], t[0]); }, {zeros({3, 2})});
  TrainingStep parts = make_training_step(two_outputs(), loss, "sgd,lr=0.1", {.accumulate = 2});
  TrainingStep whole = make_training_step(two_outputs(), loss, "sgd,lr=0.1");
  Tensor x = batch(6), t = ones({6, 2});
  parts(x.narrow(0, 0, 3), t.narrow(0, 0, 3));
  EXPECT_EQ(parts.updates(), 0);
  EXPECT_NE(error_of([&] { parts.save(testing::TempDir() + "half.safetensors"); }).find("1 of the 2"),
            std::string::npos);
  parts(x.narrow(0, 3, 3), t.narrow(0, 3, 3));
  whole(x, t);
  EXPECT_TRUE(allclose(parts.get("w"), whole.get("w"), 1e-5, 1e-6));

  TrainingStep frozen = make_training_step(two_outputs(), loss, "sgd,lr=0.1", {.freeze = {"b"}});
  frozen(x, t);
  EXPECT_EQ(frozen.trained(), std::vector<std::string>{"w"});
  EXPECT_EQ(frozen.get("b").vector<float>(), (std::vector<float>{0, 0}));
  TrainingStep groups = make_training_step(two_outputs(), loss, "sgd,lr=0.1,weight_decay=0.5",
                                           {.groups = {{.pattern = "w", .lr = 0, .weight_decay = 0}}});
  groups(x, t);
  EXPECT_EQ(groups.get("w").vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_NE(groups.get("b").vector<float>(), (std::vector<float>{0, 0}));
}

TEST(PublicTraining, GoesOnFromASavedStateWithTheSameBits) {
  std::string path = testing::TempDir() + "training.safetensors";
  Loss loss([](const Tensors& out, const Tensors& t) { return mse_loss(out[0], t[0]); }, {zeros({3, 2})});
  TrainingStep one = make_training_step(two_outputs(), loss, "adamw,lr=0.1"),
               other = make_training_step(two_outputs(), loss, "adamw,lr=0.1");
  for (int i = 0; i < 3; ++i) one(batch(4), ones({4, 2}));
  one.save(path);
  other.load(path);
  EXPECT_EQ(other.updates(), 3);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(one(batch(4), ones({4, 2})).item<float>(), other(batch(4), ones({4, 2})).item<float>());
  EXPECT_EQ(one.get("w").vector<float>(), other.get("w").vector<float>());
  EXPECT_EQ(tenon::Module(one.program()).get("w").vector<float>(), one.get("w").vector<float>());
}

TEST(PublicTraining, ProductsInBf16WithParametersInF32) {
  manual_seed(4);
  Tensor w = (randn({8, 8}) * 0.3).requires_grad_(), v = (randn({8, 2}) * 0.3).requires_grad_();
  auto forward = [&](const Tensors& in) { return Tensors{matmul(layer_norm(relu(matmul(in[0], w)), {8}), v)}; };
  Tensor x = randn({16, 8}), t = randn({16, 2});
  ExportedProgram program = export_program(forward, {x}, {.parameters = {{"w", w}, {"v", v}}});
  for (bool compile : {true, false}) {
    TrainingStep narrow =
        make_training_step(program, "mse", "adamw,lr=0.01", {.precision = "bf16", .compile = compile});
    TrainingStep full = make_training_step(program, "mse", "adamw,lr=0.01", {.compile = compile});
    double first = 0, last = 0, exact = 0;
    for (int i = 0; i < 60; ++i) {
      last = narrow(x, t).item<double>();
      exact = full(x, t).item<double>();
      if (i == 0) first = last;
    }
    EXPECT_EQ(narrow.get("w").dtype(), f32);
    EXPECT_LT(last, 0.7 * first);
    EXPECT_NEAR(last, exact, 0.05 * first);
    EXPECT_NE(last, exact);  // it is another arithmetic
  }
  EXPECT_NE(error_of([&] { make_training_step(program, "mse", "sgd", {.precision = "f8"}); }).find("full or bf16"),
            std::string::npos);
}

TEST(PublicTraining, Bf16ParametersAreTrainedInF32) {
  Loss loss([](const Tensors& out, const Tensors& t) { return mse_loss(out[0].to(f32), t[0]); }, {zeros({3, 2})});
  TrainingStep step = make_training_step(two_outputs(bf16), loss, "sgd,lr=0.0001");
  Tensor x = batch(4).to(bf16);
  for (int i = 0; i < 50; ++i) step(x, ones({4, 2}));
  EXPECT_EQ(step.get("w").dtype(), bf16);
  EXPECT_EQ(step.get("master.w").dtype(), f32);
  EXPECT_NE(step.get("master.w").vector<float>(),
            (std::vector<float>{2, 3}));  // steps that bf16 is too coarse for add up
}

TEST(PublicTraining, EightStepsTrainSideBySideAsAlone) {
  ExportedProgram program = two_outputs();
  Loss loss([](const Tensors& out, const Tensors& t) { return mse_loss(out[0], t[0]); }, {zeros({3, 2})});
  auto train = [&](uint64_t number) {
    TrainingStep step = make_training_step(program, loss, "adamw,lr=0.05", {.seed = number, .threads = 2});
    for (int i = 0; i < 10; ++i) step(batch(4) * static_cast<double>(number + 1), ones({4, 2}));
    return step.get("w").vector<float>();
  };
  std::vector<std::vector<float>> together(8);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 8; ++i) threads.emplace_back([&, i] { together[i] = train(i); });
  for (std::thread& t : threads) t.join();
  for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(together[i], train(i));
}

TEST(PublicTraining, ALossThatIsNotFiniteIsAnErrorAndChangesNothing) {
  TrainingStep step = make_training_step(
      two_outputs(), Loss([](const Tensors& out, const Tensors&) { return out[0].log().mean(); }), "sgd,lr=0.1");
  EXPECT_NE(error_of([&] { step(batch(3) - 100); }).find("not a finite number"), std::string::npos);
  EXPECT_EQ(step.get("w").vector<float>(), (std::vector<float>{2, 3}));
  EXPECT_EQ(step.updates(), 0);
}

}  // namespace

#include "tests/nn/recorded.h"

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

struct Net : nn::Module {
  nn::Conv2d conv = add("conv", nn::Conv2d(1, 4, 3, {.padding = 1}));
  nn::BatchNorm2d norm = add("norm", nn::BatchNorm2d(4));
  nn::Linear out = add("out", nn::Linear(4 * 16, 3));
  Tensor operator()(const Tensor& x) const { return out(max_pool2d(relu(norm(conv(x))), 2).flatten(1)); }
};

TEST(Export, AModelAndItsProgramComputeTheSame) {
  manual_seed(5);
  Net net;
  net.eval();
  Tensor x = randn({2, 1, 8, 8});
  ExportedProgram program = nn::export_program(net, {x}, {.input_names = {"image"}});
  EXPECT_EQ(program.input_names(), (std::vector<std::string>{"image"}));
  EXPECT_EQ(program.parameter_names().size(), 6u);
  EXPECT_EQ(program.buffer_names().size(), 3u);
  expect_close(tenon::Module(program)(x), net(x), "the result", 1e-6);
}

TEST(Export, TrainingUpdatesBuffersInTheProgramToo) {
  manual_seed(6);
  Net net;
  Tensor x = randn({2, 1, 8, 8});
  tenon::Module made(nn::export_program(net, {x}));
  EXPECT_EQ(net.norm.num_batches_tracked->item<int64_t>(), 0);  // making it changed nothing
  Tensor a = made(x), b = net(x);
  expect_close(a, b, "the result", 1e-6);
  EXPECT_EQ(made.get("norm.num_batches_tracked").item<int64_t>(), 1);
  expect_close(made.get("norm.running_var"), net.norm.running_var, "a buffer", 1e-6);
}

TEST(Export, TheProgramsGradientsAreThoseOfTheModel) {
  manual_seed(7);
  Net net;
  net.eval();
  Tensor x = randn({2, 1, 8, 8});
  auto loss = [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{net(in[0]).pow(2).mean()}; };
  ExportedProgram program =
      export_program(loss, {x}, {.parameters = net.named_parameters(), .buffers = net.named_buffers()});
  auto gradients = tenon::Module(differentiate(program)).run({x}).gradients;
  loss({x})[0].backward();
  for (const auto& [name, parameter] : net.named_parameters())
    expect_close(gradients.at(name), parameter.grad(), name, 1e-5);
}

TEST(Export, ViewsWritesConstantsAndSeveralResultsAreKept) {
  Tensor table = tensor({1.0f, 2.0f, 3.0f});
  auto f = [&](const std::vector<Tensor>& in) {
    Tensor y = in[0] * table;
    y[0].add_(10);
    Tensor frozen;
    {
      NoGradGuard off;
      frozen = y.sum();
    }
    return std::vector<Tensor>{y, frozen + in[1]};
  };
  Tensor a = ones({2, 3}), b = zeros({});
  tenon::Module made(export_program(f, {a, b}));
  auto [y, total] = made(a, b).as<Tensor, Tensor>();
  EXPECT_EQ(y.vector<float>(), (std::vector<float>{11, 12, 13, 1, 2, 3}));
  EXPECT_EQ(total.item<float>(), 42.0f);
  EXPECT_NE(show(made.program()).find("lifted_tensor_0"), std::string::npos);
}

TEST(Export, ALookAtElementsIsAnError) {
  Tensor x = ones({2});
  EXPECT_NE(error_of([&] {
              export_program([](auto& in) { return std::vector<Tensor>{in[0] * in[0].sum().template item<float>()}; },
                             {x});
            }).find("has no elements while a program is made"),
            std::string::npos);
  EXPECT_NE(error_of([&] { export_program({}, {x}); }).find("empty"), std::string::npos);
  EXPECT_NE(error_of([&] {
              export_program([](auto& in) { return in; }, {x}, {.input_names = {"a", "b"}});
            }).find("expected a name for each"),
            std::string::npos);
}

struct Block : nn::Module {
  nn::Linear inner = add("inner", nn::Linear(4, 4));
  Tensor scale = add_constant("Scale", tensor({1.0f, 2.0f, 3.0f, 4.0f}));
  nn::Parameter seen = add_buffer("seen", zeros({}), false);
  Tensor operator()(const Tensor& x) {
    nn::Scope scope(*this);
    seen.set(*seen + 1);
    return relu(inner(x)) * scale + tensor({0.5f});
  }
};
struct Twice : nn::Module {
  mutable Block block = add("Block", Block());
  Tensor operator()(const Tensor& x) const { return block(block(x)).add_(1); }
};

TEST(Export, NamesAndModuleStacksAreThoseOfPyTorch) {
  Twice net;
  Tensor x = ones({2, 4});
  ExportedProgram program = nn::export_program(net, {x}, {.input_names = {"X"}});
  std::string text = show(program);
  for (const char* part :
       {"p_block_inner_weight", "b_block_seen", "c_block_scale", "c_block_lifted_tensor_0", "lift_fresh_copy"})
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
  EXPECT_EQ(program.buffer_names(), std::vector<std::string>{"Block.seen"});
  EXPECT_EQ(net.block.seen->item<float>(), 0);  // the model keeps its own
  tenon::Module made(program);
  expect_close(made(x), net(x), "the result", 1e-6);
  EXPECT_EQ(made.get("Block.seen").item<float>(), 2);
  EXPECT_EQ(net.state_dict().count("Block.seen"), 0u);
}

struct Scaled : nn::Module {
  nn::Linear inner = add("inner", nn::Linear(4, 4));
  Tensor operator()(const Tensor& x, const Tensor& factor, const Tensor& shift = {}) const {
    nn::Scope scope(*this, x, factor, shift);
    return scope.result(inner(x) * factor);
  }
};
struct Silent : nn::Module {
  Tensor operator()(const Tensor& x) const {
    nn::Scope scope(*this);
    return x + 1;
  }
};
struct Preserved : nn::Module {
  Scaled part = add("part", Scaled());
  Silent silent = add("silent", Silent());
  Tensor operator()(const Tensor& x) const { return silent(part(part(x, x.neg()), x)); }
};

TEST(Export, CallsOfModulesKeepTheirSignatures) {
  Preserved net;
  Tensor x = ones({2, 4});
  auto kept = [&](std::vector<std::string> names) {
    return nn::export_program(net, {x}, {.preserve_module_call_signature = std::move(names)});
  };
  UnflattenedModule modules = unflatten(kept({"part", "part.inner"}));
  EXPECT_TRUE(modules.has_signature("part"));
  EXPECT_TRUE(modules.has_signature("part.inner"));
  EXPECT_FALSE(modules.has_signature("silent"));
  NoGradGuard off;
  std::vector<Value> results = modules.call_module("part", {x, x * 3, nullptr});
  ASSERT_EQ(results.size(), 1u);
  expect_close(results[0], net.part(x, x * 3), "the module alone", 1e-6);
  modules.replace(
      "part", [](const std::vector<Value>& in) { return std::vector<Value>{in[0].as<Tensor>() - in[1].as<Tensor>()}; });
  expect_close(modules(x), ones({2, 4}) * 2, "with another in its place", 1e-6);

  EXPECT_NE(error_of([&] { kept({"nowhere"}); }).find("has no module 'nowhere'; it has part, part.inner, silent"),
            std::string::npos)
      << error_of([&] { kept({"nowhere"}); });
  EXPECT_NE(error_of([&] { kept({"silent"}); }).find("does not say what it takes"), std::string::npos)
      << error_of([&] { kept({"silent"}); });
}

TEST(Export, ATensorMadeInForwardIsMadeAnewInEachRun) {
  auto f = [](const std::vector<Tensor>& in) {
    Tensor sum = tensor({0.0f, 0.0f});
    sum.add_(in[0]);
    return std::vector<Tensor>{sum};
  };
  Tensor x = ones({2});
  tenon::Module made(export_program(f, {x}));
  made(x);
  EXPECT_EQ(Tensor(made(x)).vector<float>(), (std::vector<float>{1, 1}));
}

TEST(Export, WritesToWhatIsNoStateAreRefused) {
  Tensor outside = ones({2}), x = ones({2});
  auto f = [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{outside.add_(in[0])}; };
  EXPECT_NE(error_of([&] { export_program(f, {x}); }).find("give it as a buffer"), std::string::npos);
  EXPECT_EQ(outside.vector<float>(), (std::vector<float>{1, 1}));
  struct Assigns : nn::Module {
    mutable nn::Parameter w = add_parameter("w", ones({2}));
    Tensor operator()(const Tensor& y) const {
      w.set(*w + y);
      return *w;
    }
  } assigns;
  EXPECT_NE(error_of([&] { nn::export_program(assigns, {x}); }).find("'w', which is no buffer"), std::string::npos);
  EXPECT_EQ(assigns.w->vector<float>(), (std::vector<float>{1, 1}));
}

TEST(Export, SampleInputsAreKept) {
  std::string path = testing::TempDir() + "sampled.pt2";
  Tensor x = tensor({1.0f, 2.0f});
  save(export_program([](const std::vector<Tensor>& in) { return std::vector<Tensor>{in[0] * 2}; }, {x}), path);
  ExportedProgram again = load_program(path);
  EXPECT_EQ(again.input_names(), std::vector<std::string>{"args_0"});
  EXPECT_EQ(Tensor(tenon::Module(again)(x)).vector<float>(), (std::vector<float>{2, 4}));
}

}  // namespace

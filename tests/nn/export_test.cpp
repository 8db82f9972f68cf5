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
  ExportedProgram program = nn::export_program(net, {x}, {"image"});
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

}  // namespace

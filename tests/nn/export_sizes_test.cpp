// Programs for many sizes: which dimensions are open, what forward makes of them, and what it says where it cannot.
#include "tests/nn/recorded.h"

namespace {

using namespace tenon;
using Tensors = std::vector<Tensor>;

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

#define EXPECT_SAYS(call, part)                            \
  do {                                                     \
    std::string said = error_of([&] { call; });            \
    EXPECT_NE(said.find(part), std::string::npos) << said; \
  } while (false)

ExportedProgram one(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, Dim dim) {
  return export_program([&](const Tensors& in) { return Tensors{f(in[0])}; }, {x},
                        {.input_names = {"x"}, .dynamic_shapes = {{"x", {{0, dim}}}}});
}

ExportedProgram two(const std::function<Tensor(const Tensor&, const Tensor&)>& f, const Tensor& x, const Tensor& y,
                    Dim of_x, Dim of_y) {
  return export_program([&](const Tensors& in) { return Tensors{f(in[0], in[1])}; }, {x, y},
                        {.input_names = {"x", "y"}, .dynamic_shapes = {{"x", {{0, of_x}}}, {"y", {{0, of_y}}}}});
}

Tensor rows(int64_t n) { return arange(n * 4).to(f32).view({n, 4}); }

TEST(ExportSizes, ANamedDimensionTakesAnySizeWithinItsBounds) {
  auto f = [](const Tensor& x) { return (x * 2).view({x.size(0) * 2, x.size(1) / 2}).sum(1) / x.size(0); };
  tenon::Module made(one(f, rows(3), Dim("n", {.min = 3, .max = 64})));
  for (int64_t n : {3, 4, 7, 64}) expect_close(made(rows(n)), f(rows(n)), "rows", 1e-6);
  EXPECT_SAYS(made(rows(65)), "64");
  EXPECT_SAYS(made(rows(2)), "3");
}

TEST(ExportSizes, ADerivedDimensionFollowsFromTheNameItWasMadeOf) {
  Dim n("n", {.min = 2});
  auto f = [](const Tensor& x, const Tensor& y) { return cat({x, y}).sum(0); };
  tenon::Module made(two(f, rows(3), rows(7), n, 2 * n + 1));
  expect_close(made(rows(5), rows(11)), f(rows(5), rows(11)), "5 and 11", 1e-6);
  EXPECT_SAYS(made(rows(5), rows(10)), "y");
  EXPECT_SAYS(two(f, rows(3), rows(9), n, 2 * n + 1), "y, dimension 0: expected 2*n + 1 = 7, because n = 3 at x");
  EXPECT_SAYS(one([](const Tensor& x) { return x; }, rows(7), 2 * n), "expected a size of the form 2*n, got 7");
}

TEST(ExportSizes, AutomaticDimensionsAreOpenWhereForwardAllowsIt) {
  auto add = [](const Tensor& x, const Tensor& y) { return x + y; };
  tenon::Module equal(two(add, rows(3), rows(3), Dim::automatic(), Dim::automatic()));
  expect_close(equal(rows(5), rows(5)), rows(5) * 2, "equal ones", 1e-6);
  EXPECT_SAYS(equal(rows(5), rows(4)), "");
  tenon::Module fixed(one([](const Tensor& x) { return x.view({3, 4}) + 1; }, rows(3), Dim::automatic()));
  expect_close(fixed(rows(3)), rows(3) + 1, "a fixed one", 1e-6);
  EXPECT_SAYS(fixed(rows(4)), "3");
  tenon::Module single(one([](const Tensor& x) { return x + 1; }, rows(1), Dim::automatic()));
  EXPECT_SAYS(single(rows(2)), "1");
}

TEST(ExportSizes, AConditionOnSizesBecomesOneOfTheProgram) {
  auto f = [](const Tensor& x) { return x.size(0) % 3 == 0 ? x + 1 : x; };
  tenon::Module made(one(f, rows(3), Dim::automatic()));
  expect_close(made(rows(6)), rows(6) + 1, "six", 1e-6);
  EXPECT_SAYS(made(rows(4)), "% 3");
  auto g = [](const Tensor& x) { return x.size(0) > 2 ? x + 1 : x; };
  tenon::Module open(one(g, rows(3), Dim::dynamic()));
  expect_close(open(rows(6)), rows(6) + 1, "six", 1e-6);
  EXPECT_SAYS(open(rows(2)), "3");
}

TEST(ExportSizes, ErrorsNameTheInputTheDimensionAndAWayOut) {
  auto same = [](const Tensor& x) { return x + 1; };
  EXPECT_SAYS(one(
                  [](const Tensor& x) {
                    return x.view({3, 4});
                  },
                  rows(3), Dim("n")),
              "n (x, dimension 0) shall be open, and forward works with the size 3 alone (aten::view)");
  EXPECT_SAYS(one(
                  [](const Tensor& x) {
                    return x.view({3, 4});
                  },
                  rows(3), Dim::dynamic()),
              "suggested fixes: Dim::automatic() or Dim::fixed() at x, dimension 0");
  EXPECT_SAYS(one([](const Tensor& x) { return x.size(0) > 2 ? x + 1 : x; }, rows(3), Dim("n", {.max = 10})),
              "suggested fixes: n = Dim(\"n\", {.min = 3, .max = 10})");
  EXPECT_SAYS(one([](const Tensor& x) { return x.size(0) % 2 == 0 ? x + 1 : x; }, rows(4), Dim("n")),
              "suggested fixes: n = 2 * Dim(\"_n\")");
  EXPECT_SAYS(two([](const Tensor& x, const Tensor& y) { return x + y; }, rows(3), rows(3), Dim("n"), Dim("m")),
              "suggested fixes: m = n");
  EXPECT_SAYS(one(same, rows(100), Dim("n", {.max = 64})), "x, dimension 0: expected n, a size from 0 to 64, got 100");
  EXPECT_SAYS(one(same, rows(3), Dim::fixed(5)), "x, dimension 0: expected the size 5");
  EXPECT_SAYS(one(same, rows(1), Dim("n")), "its example has size 1");
  EXPECT_SAYS(one(same, rows(1), Dim::dynamic()), "its example has size 1");
  EXPECT_SAYS(two([](const Tensor& x, const Tensor&) { return x; }, rows(3), rows(3), Dim("n", {.max = 5}),
                  Dim("n", {.max = 6})),
              "the dimension n is given with sizes from 0 to 5 at x, dimension 0 and from 0 to 6 at y, dimension 0");
  EXPECT_SAYS(export_program([](const Tensors& in) { return in; }, {rows(3)},
                             {.input_names = {"x"}, .dynamic_shapes = {{"z", {{0, Dim("n")}}}}}),
              "dynamic_shapes speaks of 'z', and the inputs are x");
  EXPECT_SAYS(export_program([](const Tensors& in) { return in; }, {rows(3)},
                             {.input_names = {"x"}, .dynamic_shapes = {{"x", {{5, Dim("n")}}}}}),
              "x has no dimension 5");
}

TEST(ExportSizes, DimensionsAreCheckedWhereTheyAreMade) {
  EXPECT_SAYS(Dim("1n"), "expected a name of letters");
  EXPECT_SAYS(Dim("n", {.min = 5, .max = 4}), "expected bounds");
  EXPECT_SAYS(Dim("n") * -1, "expected a positive number to multiply n with, got -1");
  EXPECT_SAYS(Dim("n") - 3, "would be -3 for n = 0");
  EXPECT_SAYS(Dim::automatic() * 2, "only a named dimension");
}

TEST(ExportSizes, WhatTheExamplesCannotShowIsFoundBeforeTheProgramIsGiven) {
  // cosine_similarity and others have no rule that asks: the sizes are tried.
  auto f = [](const Tensor& x) { return x.narrow(0, 0, 3) * 2; };
  EXPECT_SAYS(one(f, rows(3), Dim("n", {.min = 2})), "n (x, dimension 0)");
}

TEST(ExportSizes, ASizeStaysOpenThroughArithmeticAndIsFixedAsANumber) {
  auto open = [](const Tensor& x) {
    auto half = (x.size(0) + 1) / 2;
    return x.slice(0, 0, half).sum() * half;
  };
  tenon::Module made(one(open, rows(3), Dim("n", {.min = 2})));
  expect_close(made(rows(9)), open(rows(9)), "nine", 1e-6);
  auto fixed = [](const Tensor& x) {
    int64_t n = x.size(0);
    return x.sum() * n;
  };
  EXPECT_SAYS(one(fixed, rows(3), Dim("n")), "works with the size 3 alone");
}

TEST(ExportSizes, AModelWithOpenSizesIsTrainedAndDifferentiated) {
  manual_seed(3);
  nn::Sequential net(nn::Linear(4, 8), nn::GELU(), nn::LayerNorm(8), nn::Linear(8, 2));
  ExportedProgram program =
      nn::export_program(net, {rows(3)}, {.input_names = {"x"}, .dynamic_shapes = {{"x", {{0, Dim("n")}}}}});
  tenon::Module joint(differentiate(program));
  Tensor x = rows(5) / 10, target = ones({5, 2});
  auto gradients = joint.run({x}).gradients;
  net(x).sum().backward();
  for (const auto& [name, parameter] : net.named_parameters())
    expect_close(gradients.at(name), parameter.grad(), name, 1e-5);
  TrainingStep step = make_training_step(program, "mse", "sgd,lr=0.05");
  double first = step(x, target).item<double>(), last = 0;
  for (int i = 0; i < 20; ++i)
    last = step(i % 2 ? x : x.narrow(0, 0, 4), i % 2 ? target : target.narrow(0, 0, 4)).item<double>();
  EXPECT_LT(last, first);
}

}  // namespace

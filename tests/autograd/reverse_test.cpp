#include "tenon/autograd/reverse.h"

#include <gtest/gtest.h>

#include "tenon/interp/run_graph.h"
#include "tenon/rules/registry.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

// The gradients of the first output, weighted by the last input, with respect to the other inputs.
struct Differentiated {
  Graph graph;
  std::vector<Value> gradients;
  explicit Differentiated(std::string_view text) {
    Graph parsed = parse_graph(text, registry());
    std::vector<bool> differentiable(parsed->inputs.size(), true);
    differentiable.back() = false;
    graph = prepare_for_gradients(parsed.body(), differentiable);
    std::vector<Value> inputs;
    for (size_t i = 0; i + 1 < graph->inputs.size(); ++i) inputs.push_back(*graph->inputs[i].get<Value>());
    Value tangent = *graph->inputs.back().get<Value>();
    gradients = append_backward(graph.body(), {*graph->outputs[0].get<Value>()}, {tangent}, inputs);
  }
  std::vector<Tensor> run(std::vector<CallArg> inputs) {
    graph->outputs.clear();
    for (Value g : gradients)
      if (g) graph->outputs.emplace_back(g);
    std::vector<Tensor> out;
    for (CallArg& result : interp::run_graph(graph.body(), inputs)) out.push_back(*result.get<Tensor>());
    return out;
  }
};

TEST(Reverse, TheProductRule) {
  Differentiated d(
      "%x: f32[2] = input()\n%y: f32[2] = input()\n%t: f32[2] = input()\n%z: f32[2] = aten::mul.Tensor(%x, %y)\nreturn "
      "%z\n");
  auto g = d.run({floats({2}, {2, 3}), floats({2}, {5, 7}), floats({2}, {1, 10})});
  EXPECT_EQ(values_of(g[0]), (std::vector<float>{5, 70}));
  EXPECT_EQ(values_of(g[1]), (std::vector<float>{2, 30}));
}

TEST(Reverse, WhatIsUsedTwiceAddsUp) {
  Differentiated d(
      "%x: f32[2] = input()\n%t: f32[2] = input()\n%y: f32[2] = aten::mul.Tensor(%x, %x)\n%z: f32[2] = "
      "aten::add.Tensor(%y, %x)\nreturn %z\n");
  EXPECT_EQ(values_of(d.run({floats({2}, {2, 3}), floats({2}, {1, 1})})[0]), (std::vector<float>{5, 7}));
}

TEST(Reverse, BroadcastingIsSummedBack) {
  Differentiated d(
      "%x: f32[3] = input()\n%y: f32[2, 3] = input()\n%t: f32[2, 3] = input()\n%z: f32[2, 3] = aten::mul.Tensor(%x, "
      "%y)\nreturn %z\n");
  auto g = d.run({floats({3}, {1, 1, 1}), counting({2, 3}), floats({2, 3}, {1, 1, 1, 1, 1, 1})});
  EXPECT_EQ(g[0].sizes(), Sizes{3});
  EXPECT_EQ(values_of(g[0]), (std::vector<float>{3, 5, 7}));
}

TEST(Reverse, NothingReachesAnInputThatIsNotUsed) {
  Differentiated d(
      "%x: f32[2] = input()\n%y: f32[2] = input()\n%t: f32[2] = input()\n%z: f32[2] = aten::neg(%x)\nreturn %z\n");
  EXPECT_TRUE(static_cast<bool>(d.gradients[0]));
  EXPECT_FALSE(static_cast<bool>(d.gradients[1]));
}

TEST(Reverse, NothingPassesADetach) {
  Differentiated d(
      "%x: f32[2] = input()\n%t: f32[2] = input()\n%y: f32[2] = aten::detach(%x)\n%z: f32[2] = aten::neg(%y)\nreturn "
      "%z\n");
  EXPECT_FALSE(static_cast<bool>(d.gradients[0]));
}

TEST(Reverse, ACompositeIsReplacedByWhatHasAGradient) {
  Differentiated d(
      "%x: f32[1, 2] = input()\n%w: f32[1, 2] = input()\n%t: f32[1, 1] = input()\n%z: f32[1, 1] = aten::linear(%x, "
      "%w)\nreturn %z\n");
  auto g = d.run({floats({1, 2}, {2, 3}), floats({1, 2}, {5, 7}), floats({1, 1}, {1})});
  EXPECT_EQ(values_of(g[0]), (std::vector<float>{5, 7}));
  EXPECT_EQ(values_of(g[1]), (std::vector<float>{2, 3}));
}

TEST(Reverse, WhatIsAppendedIsMarkedAsBackward) {
  Differentiated d("%x: f32[2] = input()\n%t: f32[2] = input()\n%z: f32[2] = aten::exp(%x)\nreturn %z\n");
  EXPECT_EQ(d.graph->nodes.front().phase, Phase::forward);
  EXPECT_EQ(d.graph->nodes.back().phase, Phase::backward);
}

}  // namespace
}  // namespace tenon

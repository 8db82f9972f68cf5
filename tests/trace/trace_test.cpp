#include "tenon/trace/trace.h"

#include <gtest/gtest.h>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/views.h"
#include "tenon/rules/registry.h"
#include "tenon/trace/retrace.h"

namespace tenon {
namespace {

TEST(Trace, EveryCallBecomesANode) {
  Graph graph;
  Tracer tracer(graph.body());
  DispatchScope scope(&tracer);
  Tensor x = tracer.tensor(add_input(graph.body(), "x", make_meta(DType::f32, {4})));
  Tensor y = x * x + 1.0;
  graph->outputs = {tracer.value(y)};
  EXPECT_EQ(to_text(graph.body()),
            "%x: f32[4] = input()\n%mul: f32[4] = aten::mul.Tensor(%x, %x)\n%add: f32[4] = aten::add.Tensor(%mul, "
            "1.0)\nreturn %add\n");
}

TEST(Trace, MetasFollowFromTheRules) {
  Graph graph;
  Tracer tracer(graph.body());
  DispatchScope scope(&tracer);
  SymInt n = SymInt::symbol("s0", {.positive = true});
  Tensor x = tracer.tensor(add_input(graph.body(), "x", make_meta(DType::f32, {n, 3})));
  Tensor y = transpose(x, 0, 1);
  EXPECT_EQ(y.sizes(), (Sizes{3, n}));
  EXPECT_EQ(y.strides(), (Sizes{1, 3}));
}

TEST(Trace, AWrongCallIsAnErrorAndAddsNothing) {
  Graph graph;
  Tracer tracer(graph.body());
  DispatchScope scope(&tracer);
  Tensor x = tracer.tensor(add_input(graph.body(), "x", make_meta(DType::f32, {4})));
  Tensor y = tracer.tensor(add_input(graph.body(), "y", make_meta(DType::f32, {3})));
  EXPECT_THROW(x + y, Error);
  EXPECT_TRUE(graph->nodes.empty());
}

TEST(Trace, WhatIsWrittenInPlaceHasTheSizesOfItsTensor) {
  Graph graph;
  Tensor x(make_meta(DType::f32, {1}), &graph.body(), 0), y(make_meta(DType::f32, {4}), &graph.body(), 1);
  const Op& add = *registry().find("aten::add_.Tensor");
  EXPECT_NO_THROW(infer_any(add, CallArgs{y, x, 1}));
  EXPECT_THROW(infer_any(add, CallArgs{x, y, 1}), Error);
}

TEST(Trace, NoResultHasANegativeSize) {
  Graph graph;
  Tensor x(make_meta(DType::f32, {2, 6, 3}), &graph.body(), 0);
  const Op& norm = *registry().find("aten::native_group_norm");
  EXPECT_NO_THROW(infer_any(norm, CallArgs{x, CallArg(), CallArg(), 2, 6, 3, 3, 1e-5}));
  EXPECT_THROW(infer_any(norm, CallArgs{x, CallArg(), CallArg(), 2, 6, 3, -3, 1e-5}), Error);
}

TEST(Trace, NoViewBeginsInFrontOfItsStorage) {
  Graph graph;
  Tensor x(make_meta(DType::f32, {6}), &graph.body(), 0);
  const Op& strided = *registry().find("aten::as_strided");
  EXPECT_NO_THROW(infer_any(strided, CallArgs{x, Sizes{2}, Sizes{1}, 3}));
  EXPECT_THROW(infer_any(strided, CallArgs{x, Sizes{2}, Sizes{1}, -3}), Error);
  EXPECT_THROW(infer_any(strided, CallArgs{x, Sizes{2}, Sizes{-1}, 3}), Error);
  const Op& scatter = *registry().find("aten::as_strided_scatter");
  EXPECT_THROW(infer_any(scatter, CallArgs{x, x, Sizes{6}, Sizes{1}, -3}), Error);
}

TEST(Trace, NodesCarryThePhaseTheyAreAppendedIn) {
  Graph graph;
  Tracer tracer(graph.body());
  DispatchScope scope(&tracer);
  Tensor x = tracer.tensor(add_input(graph.body(), "x", make_meta(DType::f32, {4})));
  Tensor a = x + 1.0;
  tracer.phase = Phase::backward;
  Tensor b = a + 1.0;
  EXPECT_EQ(graph->nodes[0].phase, Phase::forward);
  EXPECT_EQ(graph->nodes[1].phase, Phase::backward);
}

TEST(Retrace, ANodeIsCalledAgainInTheNewGraph) {
  Graph graph = parse_graph("%x: f32[4] = input()\n%y: f32[4] = aten::exp(%x)\nreturn %y\n", registry());
  Replay replay(graph.body());
  replay.inputs();
  Tracer tracer(replay.graph.body());
  for (const Node& node : graph->nodes) retrace(node, replay, tracer, tracer);
  replay.outputs();
  EXPECT_NE(to_text(replay.graph.body()).find("aten::exp(%x)"), std::string::npos);
}

}  // namespace
}  // namespace tenon

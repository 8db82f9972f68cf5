#include "tenon/graph/graph.h"

#include <gtest/gtest.h>

#include "tenon/rules/registry.h"

namespace tenon {
namespace {

Graph parsed(std::string_view text) { return parse_graph(text, registry()); }

constexpr char two_results[] =
    "%x: f32[4] = input()\n"
    "%sort_0: f32[4], %sort_1: i64[4] = aten::sort(%x, -1)\n"
    "return %sort_0\n";

TEST(Graph, WhatIsPrintedReadsBackTheSame) {
  std::string once = to_text(parsed(two_results).body());
  EXPECT_EQ(to_text(parsed(once).body()), once);
}

TEST(Graph, ATakenNameGetsANumber) {
  Graph graph;
  EXPECT_EQ(graph->info(add_input(graph.body(), "x", make_meta(DType::f32, {}))).name, "x");
  EXPECT_EQ(graph->info(add_input(graph.body(), "x", make_meta(DType::f32, {}))).name, "x_1");
  EXPECT_EQ(graph->info(add_input(graph.body(), "x", make_meta(DType::f32, {}))).name, "x_2");
}

TEST(Graph, ANodeIsTheProducerOfItsResults) {
  Graph graph = parsed(two_results);
  for_each_result(graph->nodes[0], [&](Value v) { EXPECT_EQ(graph->info(v).producer, 0u); });
  EXPECT_EQ(graph->info(*graph->inputs[0].get<Value>()).producer, no_id);
}

TEST(Graph, ACopyIsApart) {
  Graph graph = parsed(two_results);
  Graph copy = graph.copy();
  add_input(copy.body(), "more", make_meta(DType::f32, {}));
  EXPECT_EQ(graph->inputs.size(), 1u);
  EXPECT_EQ(copy->inputs.size(), 2u);
}

TEST(Graph, ReplayKeepsNamesMetasAndOrder) {
  Graph graph = parsed(two_results);
  Replay replay(graph.body());
  replay.inputs();
  for (const Node& node : graph->nodes) replay.node(node);
  replay.outputs();
  EXPECT_EQ(to_text(replay.graph.body()), to_text(graph.body()));
}

TEST(Graph, AnUnknownOperatorLivesAsLongAsAGraphThatUsesIt) {
  auto graph = std::make_unique<Graph>();
  const Op* op = add_unknown_op(graph->body(), "torch.ops.mine.frobnicate.default", {"self", "how"}, 1);
  EXPECT_EQ(op->name(), "mine::frobnicate");
  EXPECT_TRUE(op->traits.unknown);
  Value x = add_input(graph->body(), "x", make_meta(DType::f32, {}));
  Value y = add_value(graph->body(), {.name = "y", .meta = make_meta(DType::f32, {})});
  add_node(graph->body(), {.op = op, .args = {x, 1}, .results = {y}});
  (*graph)->outputs = {y};
  std::weak_ptr<const Op> watched = (*graph)->unknown_ops[0];
  Graph copy = graph->copy();
  auto replayed = std::make_unique<Replay>(copy.body());
  graph.reset();
  copy = Graph();
  EXPECT_FALSE(watched.expired());
  replayed.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(RemoveDeadCode, WhatNobodyNeedsGoesAndAssertionsStay) {
  Graph graph =
      remove_dead_code(parsed("%x: bool[] = input()\n%a: bool[] = aten::logical_not(%x)\n"
                              "aten::_assert_async(%x)\nreturn %x\n"));
  ASSERT_EQ(graph->nodes.size(), 1u);
  EXPECT_EQ(graph->nodes[0].op->name(), "aten::_assert_async");
}

TEST(VerifyGraph, AUseBeforeItsDefinitionIsAnInternalError) {
  Graph graph = parsed("%x: f32[4] = input()\n%a: f32[4] = aten::exp(%x)\n%b: f32[4] = aten::exp(%a)\nreturn %b\n");
  EXPECT_NO_THROW(verify(graph.body()));
  std::swap(graph->nodes[0], graph->nodes[1]);
  EXPECT_THROW(verify(graph.body()), InternalError);
}

TEST(VerifyGraph, TwoDefinitionsOfAValueAreAnInternalError) {
  Graph graph = parsed("%x: f32[4] = input()\n%a: f32[4] = aten::exp(%x)\n%b: f32[4] = aten::exp(%x)\nreturn %b\n");
  graph->nodes[1].results = graph->nodes[0].results;
  EXPECT_THROW(verify(graph.body()), InternalError);
}

}  // namespace
}  // namespace tenon

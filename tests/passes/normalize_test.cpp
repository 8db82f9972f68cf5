#include "tenon/passes/normalize.h"

#include <gtest/gtest.h>

#include "tenon/passes/check_metas.h"
#include "tenon/passes/decompose.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

size_t count_ops(const GraphBody& graph, std::string_view name) {
  size_t n = 0;
  for (const Node& node : graph.nodes) n += node.op->name() == name;
  return n;
}

TEST(Normalize, AutocastConvertsWhatADescribedResultAsksFor) {
  for (bool enabled : {true, false}) {
    Graph graph;
    Value x = add_input(graph.body(), "x", make_meta(DType::f32, {4})),
          w = add_input(graph.body(), "w", make_meta(DType::f32, {4}));
    auto body = std::make_shared<GraphBody>();
    Value left = add_input(*body, "x", make_meta(DType::f32, {4})),
          right = add_input(*body, "w", make_meta(DType::f32, {4}));
    DType dtype = enabled ? DType::bf16 : DType::f32;
    Value inner = add_value(*body, {.name = "dot", .meta = make_meta(dtype, {})});
    add_node(*body, {.op = registry().find("aten::dot"), .args = {left, right}, .results = {inner}});
    body->outputs = {inner};
    Value dot = add_value(graph.body(), {.name = "dot", .meta = make_meta(dtype, {})});
    add_node(graph.body(), {.op = registry().find("higher_order::wrap_with_autocast"),
                            .args = {std::string("cpu"), DType::bf16, enabled, false, Subgraph{"submod", body}, x, w},
                            .results = {dot}});
    graph->outputs = {dot};
    Graph made = normalize(graph.body());
    EXPECT_EQ(count_ops(made.body(), "aten::_to_copy"), enabled ? 2u : 0u);
    EXPECT_EQ(made->nodes.back().op->name(), "aten::dot");
  }
}

TEST(Normalize, AnOperatorThatWeDoNotHaveIsRefusedByName) {
  Graph graph;
  Value x = add_input(graph.body(), "x", make_meta(DType::f32, {4}));
  const Op* op = add_unknown_op(graph.body(), "torch.ops.mine.frobnicate.default", {"self"}, 1);
  Value y = add_value(graph.body(), {.name = "y", .meta = make_meta(DType::f32, {4})});
  add_node(graph.body(), {.op = op, .args = {x}, .results = {y}});
  graph->outputs = {y};
  try {
    normalize(graph.body());
    FAIL();
  } catch (const Error& e) { EXPECT_NE(std::string(e.what()).find("mine"), std::string::npos) << e.what(); }
}

// PyTorch's decompositions describe a loss of each sample as a number where how many there are is symbolic.
TEST(CheckMetas, WhatPyTorchMisdescribesIsCorrectedAndWhatIsMadeOfIt) {
  constexpr std::string_view text = R"(%x: f32[s0, 5] = input()
%t: i64[s0] = input()
%l: f32[] = aten::nll_loss_nd(%x, %t, None, 0)
%c: f32[] = aten::cos(%l)
%s: f32[] = aten::sum(%x)
return %c
return %s
)";
  Graph graph = parse_graph(text, registry());
  EXPECT_THROW(check_metas(graph.body(), {}), Error);
  correct_misdescribed(graph.body());
  check_metas(graph.body(), {});
  EXPECT_EQ(graph->info(graph->outputs[0].as<Value>()).meta.sizes,
            (Sizes{graph->info(graph->inputs[0].as<Value>()).meta.sizes[0]}));
  EXPECT_EQ(graph->info(graph->outputs[1].as<Value>()).meta.sizes, Sizes());

  Graph other = parse_graph("%x: f32[4] = input()\n%y: f32[] = aten::cos(%x)\nreturn %y\n", registry());
  correct_misdescribed(other.body());  // an operator that PyTorch describes well: the file is wrong
  EXPECT_THROW(check_metas(other.body(), {}), Error);
}

TEST(Decompose, ACompositeIsReplacedByItsMeaning) {
  Graph graph =
      parse_graph("%x: f32[2, 3] = input()\n%w: f32[4, 3] = input()\n%y: f32[2, 4] = aten::linear(%x, %w)\nreturn %y\n",
                  registry());
  Graph made = decompose(graph.body());
  EXPECT_EQ(count_ops(made.body(), "aten::linear"), 0u);
  for (const Node& node : made->nodes) EXPECT_NE(node.op->kind, OpKind::composite) << node.op->name();
}

}  // namespace
}  // namespace tenon

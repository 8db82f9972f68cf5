#include "tenon/export/spell_sizes.h"

#include <gtest/gtest.h>

#include "tenon/export/serde/load.h"
#include "tenon/export/serde/save.h"
#include "tests/export/test_ops.h"

namespace tenon {
namespace {

// expand(x, [s77, 2*s77 + 1]) over x: f32[s77, 1], as normalize and tracing leave it.
Graph expanded() {
  Graph graph;
  SymInt s = SymInt::symbol("s77", {.positive = true});
  Value x = add_input(graph.body(), "x", make_meta(DType::f32, {s, 1}));
  Value y = add_value(graph.body(), {.name = "y", .meta = make_meta(DType::f32, {s, 2 * s + 1})});
  add_node(graph.body(), {.op = test_ops().find("torch.ops.aten.expand.default"),
                          .args = {x, Sizes{s, 2 * s + 1}, false},
                          .results = {y}});
  graph->outputs = {y, 2 * s};
  return graph;
}

TEST(SpellSizes, expressions_become_values_that_nodes_compute_once) {
  Graph graph = spell_sizes(expanded().body(), test_ops());
  ASSERT_EQ(graph->nodes.size(), 4u);  // sym_size, mul, add, expand
  EXPECT_EQ(graph->nodes[0].op->target, "torch.ops.aten.sym_size.int");
  const auto* items = graph->nodes[3].args[1].get<Arg::Items>();
  ASSERT_TRUE(items);
  EXPECT_EQ(*(*items)[0].get<Value>(), *graph->nodes[0].results[0].get<Value>());
  SymInt s = SymInt::symbol("s77", {.positive = true});
  EXPECT_EQ(graph->info(*(*items)[1].get<Value>()).expr, 2 * s + 1);
  EXPECT_EQ(graph->info(*graph->outputs[1].get<Value>()).expr, 2 * s);
}

TEST(SpellSizes, a_size_that_no_tensor_has_is_refused) {
  Graph graph = expanded();
  graph->outputs = {SymInt::symbol("u5")};
  EXPECT_THROW(spell_sizes(graph.body(), test_ops()), Error);
}

TEST(SpellSizes, a_program_with_expressions_can_then_be_written_and_read) {
  ExportedProgram program;
  program.graph = spell_sizes(expanded().body(), test_ops());
  program.signature.inputs = {{.arg = program.graph->inputs[0], .name = "x"}};
  for (const Arg& output : program.graph->outputs) program.signature.outputs.push_back({.arg = output});
  Tree leaf, args{.type = "builtins.tuple", .children = {leaf}}, keywords{.type = "builtins.dict"};
  program.module_calls = {
      {.signature = ModuleCallSignature{.in = {.type = "builtins.tuple", .children = {args, keywords}},
                                        .out = {.type = "builtins.tuple", .children = {leaf, leaf}}}}};
  program.ranges = {{"s77", {2, 9}}};
  verify(program);
  std::string json = to_json(program);
  EXPECT_EQ(to_json(read_program(json, "written", test_ops())), json);
}

}  // namespace
}  // namespace tenon

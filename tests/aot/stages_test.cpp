// Single situations, written as graphs: what functionalizing and differentiating make of them.
#include <gtest/gtest.h>

#include "tenon/aot/functionalize.h"
#include "tenon/aot/joint.h"
#include "tenon/aot/partition.h"
#include "tenon/interp/run_graph.h"
#include "tenon/rules/registry.h"

namespace tenon {
namespace {

// A program of one user input x: f32[4] and one parameter w: f32[4], built node by node.
struct Builder {
  ExportedProgram program;
  Value x, w;
  Builder() {
    Tensor weight = Tensor::empty(DType::f32, {4});
    for (int64_t i = 0; i < 4; ++i) weight.mutable_data<float>()[i] = static_cast<float>(i + 1);
    program.state.push_back({"w", weight, true});
    TensorMeta meta = make_meta(DType::f32, {4});
    meta.requires_grad = true;
    w = add_input(program.graph.body(), "p_w", meta);
    meta.requires_grad = false;
    x = add_input(program.graph.body(), "x", meta);
    program.signature.inputs = {{InputKind::parameter, w, "p_w", "w"}, {InputKind::user_input, x, "x", ""}};
    ModuleCallSignature call;
    Tree args{"builtins.tuple", "", {}, {Tree{}}}, keywords{"builtins.dict", "", {}, {}};
    call.in = {"builtins.tuple", "", {}, {args, keywords}};
    call.out = Tree{};
    program.module_calls.push_back({"", call});
  }
  Value node(const char* op, Args args, Sizes sizes = {4}) {
    const Op* found = registry().find(op);
    Value v = add_value(program.graph.body(),
                        {.name = std::string(found->schema.base()), .meta = make_meta(DType::f32, std::move(sizes))});
    while (args.size() < found->schema.args.size())
      args.push_back(
          map_tensors<Value>(found->schema.args[args.size()].default_value, [](const Tensor&) { return Value{}; }));
    add_node(program.graph.body(), {.op = found, .args = std::move(args), .results = {v}});
    return v;
  }
  void output(Value v) {
    program.graph->outputs.emplace_back(v);
    program.signature.outputs.push_back({OutputKind::user_output, v, ""});
  }
};

size_t count_ops(const GraphBody& graph, std::string_view name) {
  size_t n = 0;
  for (const Node& node : graph.nodes) n += node.op->name() == name;
  return n;
}

TEST(Functionalize, AWriteToAnInputBecomesAnUpdate) {
  Builder b;
  b.node("aten::mul_.Tensor", {b.x, 2});
  b.output(b.node("aten::mul.Tensor", {b.x, 3}));
  FunctionalProgram f = functionalize(b.program);
  for (const Node& node : f.graph->nodes) EXPECT_FALSE(node.op->writes());
  ASSERT_EQ(f.convention.outputs.size(), 2u);
  EXPECT_EQ(to_text(f.convention.outputs[0], f.convention), "updated user input 0 x");
}

TEST(Functionalize, AWriteThroughAViewReachesItsBaseAndItsOtherViews) {
  Builder b;
  Value y = b.node("aten::clone", {b.x});
  Value front = b.node("aten::slice.Tensor", {y, 0, 0, 2}, {2});
  b.node("aten::add_.Tensor", {front, 10}, {2});
  Value last = b.node("aten::slice.Tensor", {y, 0, 1, 3}, {2});
  b.output(b.node("aten::add.Tensor", {last, 0}, {2}));
  FunctionalProgram f = functionalize(b.program);
  Tensor x = Tensor::empty(DType::f32, {4});
  for (int64_t i = 0; i < 4; ++i) x.mutable_data<float>()[i] = static_cast<float>(i);
  CallArg inputs[] = {b.program.state[0].tensor, x};
  Tensor out = *interp::run_graph(f.graph.body(), inputs)[0].get<Tensor>();
  EXPECT_EQ(out.data<float>()[0], 11);
  EXPECT_EQ(out.data<float>()[1], 2);
}

TEST(Functionalize, AnUpdateHiddenFromAutogradKeepsTheOldGradient) {
  Builder b;
  Value y = b.node("aten::mul.Tensor", {b.w, 2});
  b.node("aten::mul_.Tensor", {y, 5});
  b.program.graph->nodes.back().grad_enabled = false;
  // A flag of the graph as written is set by a region; here the normalized graph is made by hand.
  Value inner = b.node("aten::sum", {y}, {});
  b.output(inner);
  Value body_in, body_out;
  auto body = std::make_shared<GraphBody>();
  body_in = add_input(*body, "y", make_meta(DType::f32, {4}));
  const Op* mul = registry().find("aten::mul_.Tensor");
  body_out = add_value(*body, {.name = "mul_", .meta = make_meta(DType::f32, {4})});
  add_node(*body, {.op = mul, .args = {body_in, 5}, .results = {body_out}});
  b.program.graph->nodes[1] = {.op = registry().find("higher_order::wrap_with_set_grad_enabled"),
                               .args = {false, Subgraph{"submod", body}, y},
                               .results = {}};
  JointProgram joint = make_joint(functionalize(b.program), 0, parse_wrt("parameters"));
  Tensor x = Tensor::empty(DType::f32, {4});
  CallArg inputs[] = {b.program.state[0].tensor, x};
  std::vector<CallArg> results = interp::run_graph(joint.graph.body(), inputs);
  EXPECT_EQ(results[0].get<Tensor>()->data<float>()[0], 100);  // the value is the new one: 10 * (1 + 2 + 3 + 4)
  EXPECT_EQ(results[1].get<Tensor>()->data<float>()[0], 2);    // the gradient is the old one's
}

TEST(Joint, AnOutputThatNeedsNoGradientTakesNoCotangent) {
  Builder b;
  b.output(b.node("aten::mul.Tensor", {b.x, 2}));
  JointProgram joint = make_joint(functionalize(b.program), 0, parse_wrt("parameters"));
  EXPECT_EQ(joint.graph->inputs.size(), 2u);
  EXPECT_EQ(joint.convention.outputs.size(), 1u);
}

// w repeated 1, 2, 3 and 4 times: a size that only a run can tell.
struct Repeated : Builder {
  Tensor counts = Tensor::empty(DType::i64, {4});
  Repeated() {
    for (int64_t i = 0; i < 4; ++i) counts.mutable_data<int64_t>()[i] = i + 1;
    SymInt size = program.graph->shapes.fresh_unbacked();
    program.graph->info(x).meta.dtype = DType::i64;
    Value many = node("aten::repeat_interleave.self_Tensor", {w, x, 0}, {size});
    output(node("aten::mul.Tensor", {many, many}, {size}));
  }
};

TEST(Joint, ACotangentWhoseSizeOnlyTheRunTellsIsOnes) {
  Repeated b;
  JointProgram joint = make_joint(functionalize(b.program), 0, parse_wrt("parameters"));
  CallArg inputs[] = {b.program.state[0].tensor, b.counts};
  std::vector<CallArg> results = interp::run_graph(joint.graph.body(), inputs);
  EXPECT_EQ(results[0].get<Tensor>()->sizes(), Sizes{10});
  EXPECT_EQ(results[1].get<Tensor>()->data<float>()[3], 32);  // 4 times 2 * 4
}

TEST(Joint, AnExpandedCompositeKeepsTheSymbolOfItsSize) {
  Repeated b;
  JointProgram joint = make_joint(functionalize(b.program), 0, parse_wrt("parameters"));
  SymInt size = joint.graph->info(*joint.graph->outputs[0].get<Value>()).meta.sizes[0];
  for (const ValueInfo& info : joint.graph->values)
    for (SymInt s : info.meta.sizes) EXPECT_TRUE(s.is_int() || s == size) << info.name;
}

TEST(Partition, WhatTheProgramUpdatesIsSavedAsACopy) {
  Builder b;
  Value y = b.node("aten::mul.Tensor", {b.x, b.w});
  b.node("aten::mul_.Tensor", {b.x, 2});
  b.output(b.node("aten::sum", {y}, {}));
  TrainingProgram halves = split(make_joint(functionalize(b.program), 0, parse_wrt("parameters")));
  EXPECT_EQ(count_ops(halves.forward.graph.body(), "aten::clone"), 1u);
  EXPECT_EQ(count_ops(halves.backward.graph.body(), "aten::mul_.Tensor"), 0u);
}

TEST(Joint, AnOutputThatIsNoScalarTakesItsCotangentAsAnInput) {
  Builder b;
  b.output(b.node("aten::mul.Tensor", {b.x, b.w}));
  JointProgram joint = make_joint(functionalize(b.program), 0, parse_wrt("all"));
  EXPECT_EQ(to_text(joint.convention.inputs.back()), "tangent of output 0");
  EXPECT_EQ(joint.convention.outputs.size(), 3u);
}

TEST(Joint, WhatHasNoGradientIsRefusedByNameOnlyWhereItsGradientIsAskedFor) {
  Builder b;
  b.output(b.node("aten::igamma", {b.w, b.x}));  // of its first argument no gradient is known
  FunctionalProgram functional = functionalize(b.program);
  EXPECT_NO_THROW(make_joint(functionalize(b.program), 0, parse_wrt("x")));
  try {
    make_joint(std::move(functional), 0, parse_wrt("w"));
    ADD_FAILURE() << "a gradient that is not known was given";
  } catch (const Error& e) { EXPECT_NE(std::string(e.what()).find("aten::igamma"), std::string::npos) << e.what(); }
}

TEST(Joint, WhatTheOutputDoesNotDependOnNeedsNoGradient) {
  Builder b;
  Value whole = b.node("aten::floor_divide", {b.x, b.w});  // has none
  b.output(b.node("aten::mul.Tensor", {b.x, b.w}));
  b.output(whole);
  JointProgram joint = make_joint(functionalize(b.program), 0, parse_wrt("all"));
  EXPECT_EQ(count_ops(joint.graph.body(), "aten::floor_divide"), 1u);
  EXPECT_THROW(make_joint(functionalize(b.program), 1, parse_wrt("all")), Error);
}

TEST(Joint, AnUnknownNameIsAnErrorThatListsTheKnownOnes) {
  Builder b;
  b.output(b.node("aten::mul.Tensor", {b.x, b.w}));
  try {
    make_joint(functionalize(b.program), 0, parse_wrt("v"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "there is no parameter, buffer or input 'v' to differentiate with respect to; there are w, x");
  }
}

}  // namespace
}  // namespace tenon

// What a backward keeps of its forward: as PyTorch's min-cut partitioner decides it, and within a budget.
#include "tenon/aot/rematerialize.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tenon/aot/min_cut.h"
#include "tenon/aot/partition.h"
#include "tenon/interp/run_graph.h"
#include "tenon/passes/common_subexpressions.h"
#include "tenon/rules/registry.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

using Names = std::set<std::string>;

JointProgram joint_of(std::string_view graph) {
  ExportedProgram program = program_of(graph);
  return make_joint(functionalize(program), 0, parse_wrt("all"));
}

Names saved_by(const JointProgram& joint) {
  Names out;
  for (const OutputMeaning& m : split(joint).forward.convention.outputs)
    if (auto* saved = std::get_if<output::Saved>(&m)) out.insert(saved->name);
  return out;
}
Names saved_by(std::string_view graph, const RematerializeOptions& options) {
  return saved_by(rematerialize(joint_of(graph), options));
}

size_t calls_of(const GraphBody& graph, std::string_view op) {
  return static_cast<size_t>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) { return node.op->name() == op; }));
}

// Situation A66 of the recordings.
constexpr std::string_view products_and_softmax = R"(%x: f32[2, 2] = input()
%w: f32[2, 2] = input()
%mm: f32[2, 2] = aten::mm(%x, %w)
%sigmoid: f32[2, 2] = aten::sigmoid(%mm)
%mul: f32[2, 2] = aten::mul.Tensor(%sigmoid, %mm)
%cos: f32[2, 2] = aten::cos(%mul)
%softmax: f32[2, 2] = aten::_softmax(%cos, 1, False)
%y: f32[2, 2] = aten::mul.Tensor(%softmax, %cos)
return %y
)";

TEST(Rematerialize, KeepsProductsAndSoftmaxAndComputesTheRestAgain) {
  EXPECT_EQ(saved_by(joint_of(products_and_softmax)), (Names{"x", "w", "mm", "sigmoid", "mul", "cos", "_softmax"}));
  // PyTorch keeps sigmoid too, which its backward reads through a detach that it does not fuse.
  EXPECT_EQ(saved_by(products_and_softmax, {}), (Names{"x", "w", "mm", "_softmax"}));
}

// Situation A84: nothing is kept but inputs, the product is computed again.
TEST(Rematerialize, WithoutMemoryOnlyInputsAreKept) {
  constexpr std::string_view graph = R"(%x: f32[2, 2] = input()
%w: f32[2, 2] = input()
%mm: f32[2, 2] = aten::mm(%x, %w)
%sigmoid: f32[2, 2] = aten::sigmoid(%mm)
%mul: f32[2, 2] = aten::mul.Tensor(%sigmoid, %mm)
%cos: f32[2, 2] = aten::cos(%mul)
return %cos
)";
  JointProgram again = rematerialize(joint_of(graph), {.memory_budget = 0});
  EXPECT_EQ(saved_by(again), (Names{"x", "w"}));
  TrainingProgram halves = split(again);
  EXPECT_EQ(calls_of(halves.forward.graph.body(), "aten::mm"), 1u);
  EXPECT_EQ(calls_of(halves.backward.graph.body(), "aten::mm"), 3u);
  EXPECT_EQ(calls_of(halves.backward.graph.body(), "aten::cos"), 0u);  // of which nothing needs the value
}

// Situation A86: PyTorch computes sin again from an input that holds another value by then.
TEST(Rematerialize, WhatTheProgramOverwritesIsNotComputedFrom) {
  constexpr std::string_view graph = R"(%x: f32[2] = input()
%p_w: f32[2] = input()
%sin: f32[2] = aten::sin(%x)
%mul: f32[2] = aten::mul.Tensor(%p_w, %sin)
%add: f32[2] = aten::add_.Tensor(%x, 1)
return %mul
)";
  ExportedProgram program = program_of(graph);
  JointProgram joint = make_joint(functionalize(program), 0, parse_wrt("parameters"));
  EXPECT_EQ(saved_by(rematerialize(joint)), (Names{"sin"}));
}

TEST(Rematerialize, AChainOfPointwiseOperatorsIsComputedFromWhereItBegins) {
  constexpr std::string_view graph = R"(%x: f32[64, 64] = input()
%a: f32[64, 64] = aten::exp(%x)
%b: f32[64, 64] = aten::sin(%a)
%c: f32[64, 64] = aten::tanh(%b)
%y: f32[] = aten::sum(%c)
return %y
)";
  EXPECT_EQ(saved_by(joint_of(graph)), (Names{"exp", "tanh", "sum"}));
  EXPECT_EQ(saved_by(graph, {}).count("x"), 1u);
  EXPECT_EQ(saved_by(graph, {}).count("tanh"), 0u);
}

TEST(Rematerialize, ASmallResultOfAReductionIsKept) {
  constexpr std::string_view graph = R"(%x: f32[64, 64] = input()
%m: f32[64, 1] = aten::mean.dim(%x, [1], True)
%d: f32[64, 64] = aten::mul.Tensor(%x, %m)
%s: f32[64, 64] = aten::mul.Tensor(%d, %d)
%y: f32[] = aten::sum(%s)
return %y
)";
  Names saved = saved_by(graph, {});
  EXPECT_EQ(saved.count("mean"), 1u);
  EXPECT_EQ(saved.count("mul"), 0u);
}

// Nine bytes of which one would do: where an activation was positive is derived in the forward.
TEST(Rematerialize, WhatIsSmallerThanWhatItIsDerivedFromIsKeptInstead) {
  constexpr std::string_view graph = R"(%x: f64[64, 64] = input()
%w: f64[64, 64] = input()
%a: f64[64, 64] = aten::mm(%x, %w)
%zero: f64[] = aten::full([], 0.0, dtype=f64)
%b: f64[64, 64] = aten::maximum(%a, %zero)
%y: f64[] = aten::sum(%b)
return %y
)";
  double most = 0, least = 0;
  auto bytes = [](const JointProgram& joint) {
    double n = 0;
    TrainingProgram halves = split(joint);
    for (size_t i = 0; i < halves.backward.graph->inputs.size(); ++i)
      if (const Value* v = halves.backward.graph->inputs[i].get<Value>()) {
        const ValueInfo& info = halves.backward.graph->info(*v);
        n += static_cast<double>(count(info.meta.sizes).as_int()) * static_cast<double>(item_size(info.meta.dtype));
      }
    return n;
  };
  most = bytes(joint_of(graph));
  least = bytes(rematerialize(joint_of(graph)));
  EXPECT_LT(least, most * 0.8);
}

TEST(Rematerialize, RandomDrawsAreKeptUntilThereIsNoRoom) {
  constexpr std::string_view graph = R"(%x: f32[64, 64] = input()
%e: f32[64, 64] = aten::exp(%x)
%d: f32[64, 64] = aten::dropout(%e, 0.5, True)
%y: f32[] = aten::sum(%d)
return %y
)";
  JointProgram joint = joint_of(graph);
  auto draws = [](const JointProgram& j) { return calls_of(split(j).backward.graph.body(), "tenon::random_uniform"); };
  EXPECT_EQ(draws(rematerialize(joint)), 0u);
  EXPECT_EQ(draws(rematerialize(joint, {.memory_budget = 0})), 1u);
}

// Eight products in a row: of what is kept at 1 a share is left, and bits do not change.
TEST(Rematerialize, ABudgetBoundsWhatIsKept) {
  std::string graph = "%x: f32[32, 16] = input()\n";
  for (int i = 0; i < 8; ++i) graph += text("%p_w", i, ": f32[16, 16] = input()\n");
  std::string last = "x";
  for (int i = 0; i < 8; ++i) {
    graph += text("%m", i, ": f32[32, 16] = aten::mm(%", last, ", %p_w", i, ")\n");
    graph += text("%t", i, ": f32[32, 16] = aten::tanh(%m", i, ")\n");
    last = text("t", i);
  }
  graph += "%y: f32[] = aten::sum(%" + last + ")\nreturn %y\n";
  JointProgram joint = joint_of(graph);
  auto kept = [&](double budget) {
    size_t n = 0;
    for (const std::string& name : saved_by(rematerialize(joint, {.memory_budget = budget})))
      n += name != "x" && name.find("p_w") == std::string::npos;
    return static_cast<double>(n);
  };
  const double most = kept(1);
  double before = most;
  EXPECT_GE(most, 8);
  for (double budget : {0.75, 0.5, 0.25, 0.0}) {
    const double now = kept(budget);
    EXPECT_LE(now, std::max(budget * most, budget == 0 ? 0.0 : 1.0)) << budget;
    EXPECT_LE(now, before);
    before = now;
  }
  EXPECT_GT(kept(0.5), 0);
}

TEST(Rematerialize, ABudgetOutsideZeroAndOneIsRefused) {
  for (double budget : {-0.1, 1.1}) try {
      rematerialize(joint_of(products_and_softmax), {.memory_budget = budget});
      ADD_FAILURE() << budget;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("expected a number from 0 to 1"), std::string::npos) << e.what();
    }
}

TEST(CommonSubexpressions, EqualCallsAreOneNode) {
  Graph graph = parse_graph(R"(%x: f32[4] = input()
%a: f32[4] = aten::add.Tensor(%x, 1)
%b: f32[4] = aten::add.Tensor(%x, 1)
%c: f32[4] = aten::add.Tensor(%x, 2)
%y: f32[4] = aten::mul.Tensor(%a, %b)
%z: f32[4] = aten::mul.Tensor(%y, %c)
return %z
)",
                            registry());
  Graph merged = merge_common_subexpressions(graph.body());
  EXPECT_EQ(merged->nodes.size(), 4u);
  EXPECT_EQ(merged->nodes[2].args[0].as<Value>(), merged->nodes[2].args[1].as<Value>());
}

// The cut against all subsets of small networks.
TEST(MinimumCut, IsTheCheapestOfAllCuts) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const size_t n = 2 + random() % 6;
    FlowNetwork network(n);
    std::vector<std::tuple<size_t, size_t, double>> edges;
    for (size_t k = 0; k < 3 * n; ++k) {
      const size_t from = random() % n, to = random() % n;
      if (from == to) continue;
      edges.emplace_back(from, to, static_cast<double>(random() % 10));
      network.add_edge(from, to, std::get<2>(edges.back()));
    }
    double least = FlowNetwork::unlimited;
    for (size_t sink_side = 0; sink_side < size_t{1} << n; ++sink_side) {
      if ((sink_side & 1) || !(sink_side & 2)) continue;  // 0 is the source, 1 the sink
      double sum = 0;
      for (auto [from, to, capacity] : edges)
        if (!(sink_side >> from & 1) && sink_side >> to & 1) sum += capacity;
      least = std::min(least, sum);
    }
    FlowNetwork::Cut cut = network.minimum_cut(0, 1);
    EXPECT_EQ(cut.capacity, least);
    double sum = 0;
    for (auto [from, to, capacity] : edges)
      if (!cut.on_sink_side[from] && cut.on_sink_side[to]) sum += capacity;
    EXPECT_EQ(sum, least);
  }
}

}  // namespace
}  // namespace tenon

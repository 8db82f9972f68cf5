// Control flow written as text, through all stages.
#include <gtest/gtest.h>

#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

using Floats = std::vector<float>;

Floats run(std::string_view graph, std::vector<CallArg> inputs) {
  return values_of(run_program(program_of(graph), inputs).outputs.at(0).as<Tensor>());
}

std::string refusal(std::string_view graph, std::vector<CallArg> inputs) {
  try {
    ExportedProgram program = program_of(graph);
    verify(program);
    run_program(program, inputs);
  } catch (const Error& error) { return error.what(); }
  return "";
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

constexpr char writing[] = R"(%b_n: f32[2] = input()
%x: f32[2] = input()
%s: f32[] = aten::sum(%x)
%p: bool[] = aten::gt.Scalar(%s, 0)
%y: f32[2] = higher_order::cond(%p, graph yes, graph no, [%x, %b_n])
  yes:
    %v: f32[2] = input()
    %n: f32[2] = input()
    %m: f32[2] = aten::add_.Tensor(%n, %v)
    %r: f32[2] = aten::mul.Tensor(%v, %m)
    return %r
  no:
    %v: f32[2] = input()
    %n: f32[2] = input()
    %r: f32[2] = aten::sub.Tensor(%v, %n)
    return %r
%z: f32[2] = aten::add.Tensor(%y, %b_n)
return %z
)";

TEST(ControlFlow, WhatABranchWritesIsWrittenWhereItIsTaken) {
  ExportedProgram program = program_of(writing);
  program.state = {{.name = "n", .tensor = floats({2}, {10, 20})}};
  RunResult taken = run_program(program, {floats({2}, {1, 2})});
  EXPECT_EQ(values_of(taken.outputs.at(0).as<Tensor>()), (Floats{11 + 11, 44 + 22}));
  ASSERT_EQ(taken.buffers.size(), 1u);
  EXPECT_EQ(values_of(taken.buffers[0].second), (Floats{11, 22}));
  RunResult other = run_program(program, {floats({2}, {-1, -2})});
  EXPECT_EQ(values_of(other.outputs.at(0).as<Tensor>()), (Floats{-11 + 10, -22 + 20}));
  EXPECT_EQ(values_of(other.buffers[0].second), (Floats{10, 20}));
}

constexpr char of_two_sizes[] = R"(%x: f32[4] = input()
%s: f32[] = aten::sum(%x)
%p: bool[] = aten::gt.Scalar(%s, 0)
%y: f32[u0] = higher_order::cond(%p, graph yes, graph no, [%x])
  yes:
    %v: f32[4] = input()
    %w: f32[3] = aten::slice.Tensor(%v, 0, 0, 3)
    %r: f32[3] = aten::mul.Tensor(%w, 2)
    return %r
  no:
    %v: f32[4] = input()
    %r: f32[4] = aten::neg(%v)
    return %r
%z: f32[u0] = aten::add.Tensor(%y, 1)
return %z
)";

TEST(ControlFlow, BranchesMayGiveTensorsOfTwoSizes) {
  EXPECT_EQ(run(of_two_sizes, {floats({4}, {1, 2, 3, 4})}), (Floats{3, 5, 7}));
  EXPECT_EQ(run(of_two_sizes, {floats({4}, {-1, -2, -3, -4})}), (Floats{2, 3, 4, 5}));
}

TEST(ControlFlow, ARegionThatIsCalledIsItsGraph) {
  EXPECT_EQ(run(R"(%x: f32[2] = input()
%y: f32[2] = higher_order::invoke_subgraph(graph part, 'part', %x)
  part:
    %v: f32[2] = input()
    %r: f32[2] = aten::mul.Tensor(%v, 3)
    return %r
return %y
)",
                {floats({2}, {1, 2})}),
            (Floats{3, 6}));
}

TEST(ControlFlow, AnAssociativeScanCombinesWhatCameBefore) {
  EXPECT_EQ(run(R"(%x: f32[3, 2] = input()
%c: f32[2] = input()
%y: f32[3, 2] = higher_order::associative_scan(graph combine, [%x], [%c])
  combine:
    %a: f32[2] = input()
    %b: f32[2] = input()
    %k: f32[2] = input()
    %m: f32[2] = aten::mul.Tensor(%a, %k)
    %r: f32[2] = aten::add.Tensor(%m, %b)
    return %r
return %y
)",
                {counting({3, 2}), floats({2}, {1, 10})}),
            (Floats{0, 1, 2, 13, 6, 135}));
}

constexpr char rounds[] = R"(%x: f32[] = input()
%y: f32[u0] = higher_order::while_loop_stack_output(graph small, graph twice, [%x], [])
  small:
    %v: f32[] = input()
    %r: bool[] = aten::lt.Scalar(%v, 10)
    return %r
  twice:
    %v: f32[] = input()
    %r: f32[] = aten::mul.Tensor(%v, 2)
    return %r
return %y
)";

TEST(ControlFlow, ALoopMayGiveWhatEachRoundCarried) {
  EXPECT_EQ(run(rounds, {floats({}, {3})}), (Floats{6, 12}));
  EXPECT_EQ(run(rounds, {floats({}, {1})}), (Floats{2, 4, 8, 16}));
  EXPECT_EQ(run(rounds, {floats({}, {30})}), Floats{});
}

TEST(ControlFlow, ALoopThatCarriesTwoValuesMayExchangeThem) {
  EXPECT_EQ(run(R"(%a: f32[] = input()
%b: f32[] = input()
%y: f32[], %z: f32[] = higher_order::while_loop(graph small, graph step, [%a, %b], [])
  small:
    %u: f32[] = input()
    %v: f32[] = input()
    %r: bool[] = aten::lt.Scalar(%v, 50)
    return %r
  step:
    %u: f32[] = input()
    %v: f32[] = input()
    %s: f32[] = aten::add.Tensor(%u, %v)
    return %v
    return %s
return %z
)",
                {floats({}, {1}), floats({}, {1})}),
            Floats{55});
}

TEST(ControlFlow, SecondGradientsGoThroughAChoice) {
  ExportedProgram program = program_of(R"(%x: f32[] = input()
%p: bool[] = aten::gt.Scalar(%x, 0)
%y: f32[] = higher_order::cond(%p, graph yes, graph no, [%x])
  yes:
    %v: f32[] = input()
    %s: f32[] = aten::mul.Tensor(%v, %v)
    %r: f32[] = aten::mul.Tensor(%s, %v)
    return %r
  no:
    %v: f32[] = input()
    %r: f32[] = aten::sin(%v)
    return %r
return %y
)");
  ExportedProgram once = differentiate(program, 0, parse_wrt("inputs"));
  ExportedProgram twice = differentiate(once, 1, parse_wrt("inputs"));
  RunResult result = run_program(twice, {floats({}, {2})});
  ASSERT_FALSE(result.gradients.empty());
  EXPECT_EQ(values_of(result.gradients.back().second), Floats{12});
}

// What is refused, and how.

TEST(ControlFlow, WhatIsNotSupportedIsSaid) {
  EXPECT_HAS(refusal(R"(%x: f32[2, 2] = input()
%w: f32[2] = input()
%y: f32[2, 2] = higher_order::map_impl(graph row, [%x], [%w])
  row:
    %v: f32[2] = input()
    %n: f32[2] = input()
    %m: f32[2] = aten::add_.Tensor(%n, %v)
    return %m
return %y
)",
                     {counting({2, 2}), counting({2})}),
             "carry the tensor instead");
}

std::string with_branch(std::string_view branch) {
  return text(R"(%x: f32[2] = input()
%p: bool[] = input()
%y: f32[2] = higher_order::cond(%p, graph yes, graph no, [%x])
  yes:
    %v: f32[2] = input()
    %r: f32[2] = aten::neg(%v)
    return %r
  no:
)",
              branch, "return %y\n");
}

TEST(ControlFlow, ABranchThatDoesNotFitIsRefused) {
  std::vector<CallArg> none;
  EXPECT_HAS(refusal(with_branch("    %v: f32[3] = input()\n    %r: f32[3] = aten::neg(%v)\n    return %r\n"), none),
             "it gets f32[2] for the input 'v' of its graph, which is f32[3]");
  EXPECT_HAS(refusal(with_branch("    %v: f32[2] = input()\n    %w: f32[2] = input()\n    %r: f32[2] = aten::neg(%v)\n"
                                 "    return %r\n"),
                     none),
             "it gets 1 values, but its graph has 2 inputs");
  EXPECT_HAS(refusal(with_branch("    %v: f32[2] = input()\n    %r: f64[2] = aten::to.dtype(%v, torch.float64)\n"
                                 "    return %r\n"),
                     none),
             "its result 'y' is described as f32[2], but its graph gives f64[2]");
}

// What vmap leaves: between entry and exit, nodes are of one sample; a batch within a batch is of level 2.
constexpr char batched[] = R"(%x: f32[3, 2] = input()
%w: f32[2] = input()
%v: f32[2] = functorch::_add_batch_dim(%x, 0, 1)
%t: f32[2] = aten::exp(%w)
%m: f32[2] = aten::mul.Tensor(%v, %t)
%s: f32[] = aten::sum(%m)
%r: f32[3] = functorch::_remove_batch_dim(%s, 1, 3, 0)
%k: f32[3, 2] = functorch::_remove_batch_dim(%w, 1, 3, 0)
%d: f32[3] = aten::sum.dim_IntList(%k, [1])
%y: f32[3] = aten::add.Tensor(%r, %d)
return %y
)";

TEST(Batches, EverySampleIsComputedAndWhatIsTheSameForAllIsRepeated) {
  EXPECT_EQ(run(batched, {floats({3, 2}, {1, 2, 3, 4, 5, 6}), floats({2}, {0, 0})}), (Floats{3, 7, 11}));
}

TEST(Batches, AlongAnotherDimensionAndOneAfterTheOther) {
  constexpr char graph[] = R"(%x: f32[2, 3] = input()
%v: f32[2] = functorch::_add_batch_dim(%x, 1, 1)
%c: f32[2] = aten::cumsum(%v, 0)
%a: f32[2, 3] = functorch::_remove_batch_dim(%c, 1, 3, 1)
%u: f32[3] = functorch::_add_batch_dim(%a, 0, 1)
%s: f32[] = aten::sum(%u)
%r: f32[2] = functorch::_remove_batch_dim(%s, 1, 2, 0)
return %r
)";
  EXPECT_EQ(run(graph, {counting({2, 3})}), (Floats{3, 15}));
}

TEST(Batches, WithinBatches) {
  constexpr char graph[] = R"(%x: f32[2, 3] = input()
%v: f32[3] = functorch::_add_batch_dim(%x, 0, 1)
%e: f32[] = functorch::_add_batch_dim(%v, 0, 2)
%q: f32[] = aten::mul.Tensor(%e, %e)
%w: f32[3] = functorch::_remove_batch_dim(%q, 2, 3, 0)
%s: f32[] = aten::sum(%w)
%r: f32[2] = functorch::_remove_batch_dim(%s, 1, 2, 0)
return %r
)";
  EXPECT_EQ(run(graph, {counting({2, 3})}), (Floats{5, 50}));
}

// What jvp leaves: a tensor with its direction, and both of them again.
std::string moved(std::string_view direction, std::string_view dual, std::string_view result) {
  return text("%x: f32[2] = input()\n%t: f32", direction, " = input()\n%d: f32", dual,
              " = functorch::_make_dual(%x, %t, 0)\n%s: f32", dual, " = aten::exp(%d)\n%p: f32", result, ", %q: f32",
              result, " = functorch::_unpack_dual(%s, 0)\nreturn %q\n");
}

TEST(Directions, MoveWithTheirTensors) {
  EXPECT_EQ(run(moved("[2]", "[2]", "[2]"), {floats({2}, {0, 0}), floats({2}, {3, 4})}), (Floats{3, 4}));
}

TEST(Directions, ThatDoNotFitAreRefused) {
  std::vector<CallArg> none;
  EXPECT_HAS(refusal(moved("[3]", "[2]", "[2]"), none),
             "_make_dual: the direction of 'd' is described as f32[2], but is f32[3]");
  EXPECT_HAS(refusal(moved("[3]", "[3]", "[3]"), none), "the tensor of 'd' is described as f32[3], but is f32[2]");
  EXPECT_HAS(refusal(moved("[2]", "[2]", "[4]"), none), "its result 'p' is described as f32[4], but is f32[2]");
  EXPECT_HAS(refusal("%x: f32[2] = input()\n%d: f32[2] = functorch::_make_dual(None, None, 0)\nreturn %x\n", none),
             "expected a tensor as argument 0, got None");
  EXPECT_HAS(refusal("%x: f32[2] = input()\n%d: f32[2] = functorch::_make_dual(%x)\nreturn %x\n", none),
             "expected 3 arguments, got 1");
}

TEST(Batches, ThatDoNotFitAreRefused) {
  std::vector<CallArg> none;
  auto batch = [](std::string_view sample, std::string_view entry, std::string_view result) {
    return text("%x: f32[3, 2] = input()\n%v: f32", sample, " = functorch::_add_batch_dim(", entry, ")\n%e: f32",
                sample, " = aten::exp(%v)\n%r: f32", result,
                " = functorch::_remove_batch_dim(%e, 1, 3, 0)\nreturn %r\n");
  };
  EXPECT_EQ(refusal(batch("[2]", "%x, 0, 1", "[3, 2]"), {counting({3, 2})}), "");
  EXPECT_HAS(refusal(batch("[5]", "%x, 0, 1", "[3, 5]"), none), "its result 'v' is described as f32[5], but is f32[2]");
  EXPECT_HAS(refusal(batch("[2]", "%x, 0, 1", "[4, 2]"), none),
             "its result 'r' is described as f32[4, 2], but is f32[3, 2]");
  EXPECT_HAS(refusal(batch("[2]", "%x, 7, 1", "[3, 2]"), none), "expected a dimension of f32[3, 2], got 7");
  EXPECT_HAS(refusal(batch("[2]", "None, 0, 1", "[3, 2]"), none), "expected a tensor as argument 0, got None");
}

TEST(ControlFlow, ACalledGraphGivesWhatItsCallSays) {
  std::vector<CallArg> none;
  auto call = [](std::string_view input, std::string_view result) {
    return text("%x: f32[2] = input()\n%y: f32", result,
                " = higher_order::invoke_subgraph(graph g, 'g', %x)\n  g:\n    %v: f32", input,
                " = input()\n    %r: f32", input, " = aten::neg(%v)\n    return %r\nreturn %y\n");
  };
  EXPECT_EQ(refusal(call("[2]", "[2]"), {floats({2}, {1, 2})}), "");
  EXPECT_HAS(refusal(call("[2]", "[9]"), none), "its result 'y' is described as f32[9], but is f32[2]");
  EXPECT_HAS(refusal(call("[9]", "[9]"), none), "the input 'v' is described as f32[9], but is f32[2]");
}

TEST(ControlFlow, AnAssociativeScanTakesRows) {
  std::vector<CallArg> none;
  auto scan = [](std::string_view row, std::string_view result) {
    return text("%x: f32[3, 2] = input()\n%y: f32", result,
                " = higher_order::associative_scan(graph g, [%x], [])\n  g:\n    %a: f32", row,
                " = input()\n    %b: f32", row, " = input()\n    %r: f32", row,
                " = aten::add.Tensor(%a, %b)\n    return %r\nreturn %y\n");
  };
  EXPECT_EQ(refusal(scan("[2]", "[3, 2]"), {counting({3, 2})}), "");
  EXPECT_HAS(refusal(scan("[7]", "[3, 2]"), none), "the input 'a' is described as f32[7], but is f32[2]");
  EXPECT_HAS(refusal(scan("[2]", "[3, 9]"), none), "its result 'y' is described as f32[3, 9], but is f32[3, 2]");
}

std::string with_loop(std::string_view condition, std::string_view step) {
  return text("%x: f32[2] = input()\n%y: f32[2] = higher_order::while_loop(graph c, graph b, [%x], [])\n  c:\n",
              condition, "  b:\n", step, "return %y\n");
}

TEST(ControlFlow, ALoopThatDoesNotFitIsRefused) {
  std::vector<CallArg> none;
  std::string good = "    %v: f32[2] = input()\n    %s: f32[] = aten::sum(%v)\n    return %s\n";
  std::string same = "    %v: f32[2] = input()\n    %r: f32[2] = aten::neg(%v)\n    return %r\n";
  EXPECT_HAS(refusal(with_loop(same, same), none), "expected its first graph to give a condition, got f32[2]");
  EXPECT_HAS(refusal(with_loop(good, good), none), "output 0 is f32[] where f32[2] is expected");
  EXPECT_HAS(refusal(with_loop(good, "    %v: f32[2] = input()\n    return %v\n    return %v\n"), none),
             "its graph gives 2 values where 1 are expected");
}

TEST(ControlFlow, RowsThatDoNotFitAreRefused) {
  std::vector<CallArg> none;
  auto map = [](std::string_view sizes, std::string_view row) {
    return text("%x: f32", sizes, " = input()\n%y: f32[3, 2] = higher_order::map_impl(graph row, [%x], [])\n  row:\n",
                "    %v: f32", row, " = input()\n    %r: f32", row, " = aten::neg(%v)\n    return %r\nreturn %y\n");
  };
  EXPECT_HAS(refusal(map("[]", "[2]"), none), "expected tensors with rows to go over");
  EXPECT_HAS(refusal(map("[3, 2]", "[5]"), none), "input 0 is f32[5] where f32[2] is expected");
  EXPECT_HAS(refusal(map("[4, 2]", "[2]"), none), "result 0 is f32[3, 2] where f32[4, 2] is expected");
}

}  // namespace
}  // namespace tenon

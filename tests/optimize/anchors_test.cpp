// Products and convolutions with what stood behind them: scales, epilogues, packed weights.
#include <gtest/gtest.h>

#include <set>

#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

using namespace loop;

Program packed(std::string_view graph) { return prepare(functionalize(program_of(graph)))->program; }

constexpr std::string_view linear_relu = R"(%p_w: f32[8, 4] = input()
%p_b: f32[8] = input()
%x: f32[3, 4] = input()
%h: f32[3, 8] = aten::linear(%x, %p_w, %p_b)
%y: f32[3, 8] = aten::relu(%h)
return %y
)";

TEST(Epilogues, ALayerIsOneStepThatWritesTheResult) {
  Program p = packed(linear_relu);
  ASSERT_EQ(p.steps.size(), 1u);
  const Gemm& gemm = std::get<Gemm>(p.steps[0]);
  EXPECT_TRUE(gemm.epilogue.has_bias);
  EXPECT_TRUE(gemm.epilogue.relu);
  EXPECT_FALSE(gemm.epilogue.has_residual);
  EXPECT_EQ(p.buffers[gemm.out.buffer].role, Role::output);
  EXPECT_EQ(gemm.epilogue.bias.sizes, Sizes{8});
}

TEST(Epilogues, AThreeLayerPerceptronIsThreeSteps) {
  Program p = packed(R"(%p_a: f32[16, 8] = input()
%p_b: f32[16] = input()
%p_c: f32[16, 16] = input()
%p_d: f32[16] = input()
%p_e: f32[4, 16] = input()
%p_f: f32[4] = input()
%x: f32[2, 8] = input()
%a: f32[2, 16] = aten::linear(%x, %p_a, %p_b)
%b: f32[2, 16] = aten::relu(%a)
%c: f32[2, 16] = aten::linear(%b, %p_c, %p_d)
%d: f32[2, 16] = aten::relu(%c)
%y: f32[2, 4] = aten::linear(%d, %p_e, %p_f)
return %y
)");
  EXPECT_EQ(p.steps.size(), 3u);
  EXPECT_EQ(p.on_state.size(), 3u);
}

TEST(Epilogues, AResidualIsAddedBehindTheBias) {
  Program p = packed(R"(%p_w: f32[4, 4] = input()
%p_b: f32[4] = input()
%x: f32[3, 4] = input()
%h: f32[3, 4] = aten::linear(%x, %p_w, %p_b)
%y: f32[3, 4] = aten::add.Tensor(%h, %x)
return %y
)");
  ASSERT_EQ(p.steps.size(), 1u);
  const Gemm& gemm = std::get<Gemm>(p.steps[0]);
  EXPECT_TRUE(gemm.epilogue.has_bias && gemm.epilogue.has_residual);
  EXPECT_EQ(p.buffers[gemm.epilogue.residual.buffer].name, "x");
}

TEST(Epilogues, RowsOfAProductMayBeTokensOfSeveralSequences) {
  for (std::string batch : {"2", "s0"}) {
    Program p = packed(
        "%p_w: f32[8, 4] = input()\n%p_b: f32[8] = input()\n%x: f32[" + batch + ", 3, 4] = input()\n%r: f32[" + batch +
        ", 3, 8] = input()\n%h: f32[" + batch + ", 3, 8] = aten::linear(%x, %p_w, %p_b)\n%s: f32[" + batch +
        ", 3, 8] = aten::add.Tensor(%h, %r)\n%y: f32[" + batch + ", 3, 8] = aten::relu(%s)\nreturn %y\n");
    ASSERT_EQ(p.steps.size(), 1u) << to_text(p);
    const Gemm& gemm = std::get<Gemm>(p.steps[0]);
    EXPECT_TRUE(gemm.epilogue.has_bias && gemm.epilogue.has_residual && gemm.epilogue.relu);
    EXPECT_EQ(gemm.epilogue.residual.strides[1], SymInt(8));
    EXPECT_EQ(p.buffers[gemm.out.buffer].role, Role::output);
  }
}

TEST(Epilogues, ABiasIsAddedBeforeHeadsAreTurned) {
  std::string_view graph = R"(%p_w: f32[8, 8] = input()
%p_b: f32[8] = input()
%x: f32[2, 3, 8] = input()
%h: f32[2, 3, 8] = aten::linear(%x, %p_w, %p_b)
%v: f32[2, 3, 4, 2] = aten::view(%h, [2, 3, 4, 2])
%t: f32[2, 4, 3, 2] = aten::permute(%v, [0, 2, 1, 3])
%y: f32[2, 4, 3, 2] = aten::relu(%t)
return %y
)";
  Program p = packed(graph);
  EXPECT_TRUE(std::get<Gemm>(p.steps[0]).epilogue.has_bias) << to_text(p);
}

TEST(Epilogues, AResidualThatIsBroadcastOverSequencesIsNone) {
  Program p = packed(R"(%p_w: f32[8, 4] = input()
%x: f32[2, 3, 4] = input()
%r: f32[3, 8] = input()
%h: f32[2, 3, 8] = aten::linear(%x, %p_w)
%y: f32[2, 3, 8] = aten::add.Tensor(%h, %r)
return %y
)");
  EXPECT_FALSE(std::get<Gemm>(p.steps[0]).epilogue.has_residual);
}

TEST(Epilogues, PoolingLeavesBatchNormToTheConvolutionBeforeIt) {
  Program p = packed(R"(%p_w: f32[8, 1, 3, 3] = input()
%p_c: f32[8] = input()
%p_g: f32[8] = input()
%p_b: f32[8] = input()
%b_m: f32[8] = input()
%b_v: f32[8] = input()
%x: f32[1, 1, 6, 6] = input()
%c: f32[1, 8, 4, 4] = aten::convolution(%x, %p_w, %p_c, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
%n: f32[1, 8, 4, 4] = aten::batch_norm(%c, %p_g, %p_b, %b_m, %b_v, False, 0.1, 1e-05, True)
%r: f32[1, 8, 4, 4] = aten::relu(%n)
%y: f32[1, 8, 2, 2] = aten::max_pool2d(%r, [2, 2], [2, 2])
return %y
)");
  ASSERT_EQ(p.steps.size(), 2u) << to_text(p);
  const Convolution& c = std::get<Convolution>(p.steps[0]);
  EXPECT_TRUE(c.epilogue.has_bias && c.epilogue.relu);
}

TEST(Epilogues, WhatAnEpilogueCannotDoStaysAStage) {
  Program p = packed(R"(%p_w: f32[4, 4] = input()
%p_b: f32[4] = input()
%x: f32[3, 4] = input()
%h: f32[3, 4] = aten::linear(%x, %p_w, %p_b)
%y: f32[3, 4] = aten::gelu(%h)
return %y
)");
  ASSERT_EQ(p.steps.size(), 2u);
  EXPECT_TRUE(std::get<Gemm>(p.steps[0]).epilogue.has_bias);
}

TEST(Epilogues, AResultThatSomebodyElseReadsIsStoredAsItWas) {
  Program p = packed(R"(%p_w: f32[4, 4] = input()
%x: f32[3, 4] = input()
%h: f32[3, 4] = aten::mm(%x, %p_w)
%y: f32[3, 4] = aten::relu(%h)
return %y
return %h
)");
  EXPECT_FALSE(std::get<Gemm>(p.steps[0]).epilogue.relu);
}

TEST(Epilogues, AProductThatIsOnlyCopiedIsStoredThereAtOnce) {
  Program p = packed(R"(%p_w: f32[4, 8] = input()
%x: f32[2, 3, 4] = input()
%r: f32[6, 4] = aten::view(%x, [6, 4])
%h: f32[6, 8] = aten::mm(%r, %p_w)
%y: f32[2, 3, 8] = aten::view(%h, [2, 3, 8])
return %y
)");
  ASSERT_EQ(p.steps.size(), 1u);
  EXPECT_EQ(p.buffers[std::get<Gemm>(p.steps[0]).out.buffer].role, Role::output);
  p = packed(R"(%p_w: f32[4, 8] = input()
%x: f32[6, 4] = input()
%h: f32[6, 8] = aten::mm(%x, %p_w)
%t: f32[8, 6] = aten::t(%h)
%y: f32[8, 6] = aten::clone(%t, memory_format=torch.contiguous_format)
return %y
)");
  EXPECT_EQ(p.steps.size(), 2u);  // turned on the way
}

TEST(Epilogues, AProductIsWrittenIntoItsPartOfACat) {
  std::string_view graph = R"(%p_w: f32[4, 2] = input()
%p_b: f32[2] = input()
%x: f32[3, 4] = input()
%h: f32[3, 2] = aten::addmm(%p_b, %x, %p_w)
%y: f32[3, 6] = aten::cat([%x, %h], 1)
return %y
)";
  Program p = packed(graph);
  ASSERT_EQ(p.steps.size(), 2u);
  const Gemm& gemm = std::get<Gemm>(p.steps[1]);
  EXPECT_EQ(gemm.out.offset, SymInt(4));
  EXPECT_EQ(gemm.out.strides[1], SymInt(6));
  ExportedProgram program = program_of(graph);
  State state;
  state.add("w", floats({4, 2}, {1, 0, 0, 1, 0, 0, 0, 0}));
  state.add("b", floats({2}, {10, 20}));
  RunResult r = Session(prepare(functionalize(program))).run(state, {counting({3, 4})});
  EXPECT_EQ(values_of(r.outputs[0].as<Tensor>()),
            (std::vector<float>{0, 1, 2, 3, 10, 21, 4, 5, 6, 7, 14, 25, 8, 9, 10, 11, 18, 29}));
}

constexpr std::string_view normalized = R"(%p_w: f32[8, 3, 3, 3] = input()
%p_g: f32[8] = input()
%p_b: f32[8] = input()
%b_m: f32[8] = input()
%b_v: f32[8] = input()
%x: f32[1, 3, 6, 6] = input()
%c: f32[1, 8, 4, 4] = aten::convolution(%x, %p_w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
%n: f32[1, 8, 4, 4] = aten::batch_norm(%c, %p_g, %p_b, %b_m, %b_v, False, 0.1, 1e-05, True)
%y: f32[1, 8, 4, 4] = aten::relu(%n)
return %y
)";

TEST(FoldScales, BatchNormInEvaluationIsInTheWeights) {
  Program p = packed(normalized);
  ASSERT_EQ(p.steps.size(), 1u);
  const Convolution& c = std::get<Convolution>(p.steps[0]);
  EXPECT_TRUE(c.packed && c.epilogue.has_bias && c.epilogue.relu);
}

TEST(FoldScales, FactorsOfInputsStayWhereTheyAre) {
  Program p = packed(R"(%p_w: f32[4, 4] = input()
%s: f32[4] = input()
%x: f32[3, 4] = input()
%h: f32[3, 4] = aten::mm(%x, %p_w)
%y: f32[3, 4] = aten::mul.Tensor(%h, %s)
return %y
)");
  EXPECT_EQ(p.steps.size(), 2u);
}

TEST(FoldScales, HalfPrecisionIsRoundedWhereItWas) {
  Program p = packed(R"(%p_w: bf16[4, 4] = input()
%p_s: bf16[4] = input()
%x: bf16[3, 4] = input()
%h: bf16[3, 4] = aten::mm(%x, %p_w)
%y: bf16[3, 4] = aten::mul.Tensor(%h, %p_s)
return %y
)");
  EXPECT_NE(to_text(p).find("round_to bf16"), std::string::npos);
}

TEST(PackWeights, TiedWeightsArePackedOnce) {
  Program p = packed(R"(%p_w: f32[4, 4] = input()
%x: f32[3, 4] = input()
%a: f32[3, 4] = aten::linear(%x, %p_w)
%b: f32[3, 4] = aten::relu(%a)
%y: f32[3, 4] = aten::linear(%b, %p_w)
return %y
)");
  EXPECT_EQ(p.on_state.size(), 1u);
}

TEST(PackWeights, WeightsThatTheProgramWritesAreNotPacked) {
  Program p = packed(R"(%p_w: f32[4, 4] = input()
%x: f32[4, 4] = input()
%y: f32[4, 4] = aten::mm(%x, %p_w)
%n: f32[4, 4] = aten::add_.Tensor(%p_w, %x)
return %y
)");
  EXPECT_TRUE(p.on_state.empty());
}

TEST(PackWeights, WhatOnlyPackingReadsIsNoDerivedBuffer) {
  Program p = packed(normalized);
  size_t derived = 0;
  for (const Buffer& b : p.buffers) derived += b.role == Role::derived;
  EXPECT_EQ(derived, 2u);  // the packed weights and the bias
}

/// Which buffers the steps of a run read.
std::set<std::string> read_by_steps(const Program& p) {
  std::set<std::string> out;
  for (const Step& step : p.steps)
    for_each_read(p, step, [&](BufferId b) {
      const Buffer& buffer = p.buffers[b];
      out.insert(buffer.view_of == no_buffer ? buffer.name : p.buffers[buffer.view_of].name);
    });
  return out;
}

TEST(PackWeights, AVocabularyThatIsAlsoTheHeadIsLookedUpPacked) {
  auto executable = prepare(functionalize(program_of(R"(%p_w: f32[20, 8] = input()
%i: i64[3] = input()
%e: f32[3, 8] = aten::embedding(%p_w, %i)
%y: f32[3, 20] = aten::linear(%e, %p_w)
return %e
return %y
)")));
  EXPECT_FALSE(read_by_steps(executable->program).contains("p_w"));
  State state;
  state.add("w", counting({20, 8}));
  Session session(executable);
  auto looked_up = [&](int64_t i) {
    auto found = values_of(session.run(state, {integers({3}, {0, i, 0})}).outputs[0].as<Tensor>());
    return std::vector<float>(found.begin() + 8, found.begin() + 16);
  };
  const std::vector<float> all = values_of(counting({20, 8}));
  for (int64_t row : {0, 15, 16, 19})
    EXPECT_EQ(looked_up(row), std::vector<float>(all.begin() + row * 8, all.begin() + row * 8 + 8)) << row;
  for (int64_t wrong : {20, 31, 1000, -1, -20}) {  // the last panel holds 16 to 31
    try {
      looked_up(wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(text("index ", wrong, " is out of range")), std::string::npos) << e.what();
    }
  }
}

TEST(PackWeights, AVocabularyThatIsReadOtherwiseTooStaysAsItIs) {
  Program p = packed(R"(%p_w: f32[20, 8] = input()
%x: f32[20, 8] = input()
%i: i64[3] = input()
%e: f32[3, 8] = aten::embedding(%p_w, %i)
%y: f32[3, 20] = aten::linear(%e, %p_w)
%m: f32[20, 8] = aten::mul.Tensor(%p_w, %x)
return %y
return %m
)");
  EXPECT_TRUE(read_by_steps(p).contains("p_w"));
}

TEST(PackWeights, HalvesStayHalvesAndAreReadWhereTheyLie) {
  for (const char* dtype : {"bf16", "f16"}) {
    std::string graph = R"(%p_w: HALF[20, 8] = input()
%i: i64[3] = input()
%e: HALF[3, 8] = aten::embedding(%p_w, %i)
%y: HALF[3, 20] = aten::linear(%e, %p_w)
return %y
)";
    for (size_t at; (at = graph.find("HALF")) != std::string::npos;) graph.replace(at, 4, dtype);
    Program p = packed(graph);
    ASSERT_EQ(p.on_state.size(), 1u);  // nothing is widened on the way
    const Pack& pack = std::get<Pack>(p.on_state[0]);
    EXPECT_EQ(p.buffers[pack.from.buffer].dtype, p.buffers[pack.to].dtype);
    EXPECT_FALSE(read_by_steps(p).contains("p_w"));
  }
}

TEST(PackWeights, HalvesThatAreNotJustWidenedStayInF32) {
  Program p = packed(R"(%p_w: bf16[8, 4] = input()
%x: f32[3, 8] = input()
%f: f32[8, 4] = aten::_to_copy(%p_w, dtype=f32)
%s: f32[8, 4] = aten::mul.Scalar(%f, 3)
%y: f32[3, 4] = aten::mm(%x, %s)
return %y
)");
  EXPECT_EQ(p.buffers[std::get<Gemm>(p.steps[0]).b.buffer].dtype, DType::f32);
}

}  // namespace
}  // namespace tenon

// What each kind of operator becomes. Texts of whole programs are in tests/golden/loops.txt.
#include "tenon/lower/lower.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tenon/pipeline.h"
#include "tenon/rules/registry.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

using namespace loop;

Program lowered(std::string_view graph) { return prepare(functionalize(program_of(graph)))->program; }

template <class S>
size_t count_of(const Program& p) {
  size_t n = 0;
  for (const Step& step : p.steps) n += std::holds_alternative<S>(step);
  return n;
}
template <class S>
size_t first_of(const Program& p) {
  for (size_t i = 0; i < p.steps.size(); ++i)
    if (std::holds_alternative<S>(p.steps[i])) return i;
  return p.steps.size();
}
bool writes_input(const Program& p, const Step& step) {
  bool found = false;
  for_each_write(p, step,
                 [&](BufferId b) { found |= p.buffers[b].role == Role::input || p.buffers[b].role == Role::state; });
  return found;
}

TEST(Lower, APointwiseOperatorIsOneStageIntoTheOutput) {
  Program p = lowered("%x: f32[4] = input()\n%y: f32[4] = aten::exp(%x)\nreturn %y\n");
  ASSERT_EQ(p.steps.size(), 1u);
  const Stage& stage = std::get<Stage>(p.steps[0]);
  EXPECT_EQ(p.buffers[stage.stores[0].to].role, Role::output);
  EXPECT_TRUE(stage.reduce.empty());
}

TEST(Lower, AReductionIsAStageThatReduces) {
  Program p = lowered("%x: f32[4, 3] = input()\n%y: f32[4] = aten::amax(%x, [1])\nreturn %y\n");
  const Stage& stage = std::get<Stage>(p.steps[0]);
  EXPECT_EQ(stage.domain, Sizes{4});
  EXPECT_EQ(stage.reduce, Sizes{3});
  EXPECT_EQ(stage.accumulators[0].combine, Combine::max);
}

TEST(Lower, MatricesConvolutionsSortsAndScansAreAnchors) {
  EXPECT_EQ(count_of<Gemm>(lowered(
                "%x: f32[2, 3] = input()\n%w: f32[3, 4] = input()\n%y: f32[2, 4] = aten::mm(%x, %w)\nreturn %y\n")),
            1u);
  EXPECT_EQ(count_of<Sort>(lowered("%x: f32[4] = input()\n%v: f32[4], %i: i64[4] = aten::sort(%x)\nreturn %v\n")), 1u);
  EXPECT_EQ(count_of<TopK>(lowered("%x: f32[4] = input()\n%v: f32[2], %i: i64[2] = aten::topk(%x, 2)\nreturn %v\n")),
            1u);
  EXPECT_EQ(count_of<Scan>(lowered("%x: f32[4] = input()\n%y: f32[4] = aten::cumsum(%x, 0)\nreturn %y\n")), 1u);
  EXPECT_EQ(count_of<Convolution>(lowered("%x: f32[1, 2, 5, 5] = input()\n%w: f32[3, 2, 3, 3] = input()\n"
                                          "%y: f32[1, 3, 3, 3] = aten::convolution(%x, %w, None, [1, 1], [0, 0], [1, "
                                          "1], False, [0, 0], 1)\nreturn %y\n")),
            1u);
}

TEST(Lower, AViewIsABufferWithinItsBaseAndKeepsItsMap) {
  Program p = lowered(
      "%x: f32[4, 3] = input()\n%r: f32[3] = aten::select.int(%x, 0, 2)\n%y: f32[3] = aten::neg(%r)\nreturn %y\n");
  ASSERT_EQ(p.steps.size(), 1u);
  const Buffer* view = nullptr;
  for (const Buffer& b : p.buffers)
    if (b.view_of != no_buffer) view = &b;
  ASSERT_TRUE(view);
  EXPECT_EQ(p.buffers[view->view_of].name, "x");
  EXPECT_EQ(view->offset, SymInt(6));
  EXPECT_FALSE(view->map.parts.empty());
  TensorMeta base = make_meta(DType::f32, {4, 3});
  EXPECT_EQ(viewed(view->map, base).sizes, view->sizes);
  EXPECT_EQ(viewed(view->map, base).offset, view->offset);
}

TEST(Lower, AViewOfAViewLiesInTheRoot) {
  Program p = lowered(
      "%x: f32[4, 3] = input()\n%t: f32[3, 4][1, 3] = aten::t(%x)\n%r: f32[4][3] = aten::select.int(%t, 0, 1)\n"
      "%y: f32[4] = aten::neg(%r)\nreturn %y\n");
  for (const Buffer& b : p.buffers)
    if (b.view_of != no_buffer) { EXPECT_EQ(p.buffers[b.view_of].view_of, no_buffer); }
}

TEST(Lower, WhatNoStageCanDoIsACallAndItsSizesAreBoundBehindIt) {
  Program p = lowered(
      "%x: f32[4] = input()\n%i: i64[u0, 1][1, u0] = aten::nonzero(%x)\n%y: i64[u0, 1][1, u0] = aten::neg(%i)\nreturn "
      "%y\n");
  ASSERT_EQ(count_of<Call>(p), 1u);
  ASSERT_EQ(count_of<Bind>(p), 1u);
  EXPECT_EQ(first_of<Bind>(p), first_of<Call>(p) + 1);
  const Call& call = std::get<Call>(p.steps[first_of<Call>(p)]);
  EXPECT_EQ(call.name, "aten::nonzero");
  EXPECT_EQ(call.op, registry().find("aten::nonzero"));
  const Bind& bind = std::get<Bind>(p.steps[first_of<Bind>(p)]);
  EXPECT_EQ(bind.dim, 0);
  EXPECT_EQ(bind.symbol.name(), "u0");
}

TEST(Lower, AnAssertionIsACheckOfAnElement) {
  Program p = lowered("%x: bool[] = input()\naten::_assert_async.msg(%x, 'it must hold')\nreturn %x\n");
  ASSERT_EQ(count_of<loop::Check>(p), 1u);
  const loop::Check& check = std::get<loop::Check>(p.steps[first_of<loop::Check>(p)]);
  EXPECT_NE(check.tensor, no_buffer);
  EXPECT_EQ(check.message, "it must hold");
}

TEST(Lower, AnUpdateIsStoredLastBehindEveryCheckAndRead) {
  Program p = lowered(R"(%b_n: f32[4] = input()
%x: f32[4] = input()
%n: f32[4] = aten::add_.Tensor(%b_n, %x)
%s: f32[] = aten::sum(%x)
%ok: bool[] = aten::gt.Scalar(%s, 0)
aten::_assert_async.msg(%ok, 'positive')
%y: f32[4] = aten::mul.Tensor(%b_n, 2)
return %y
)");
  size_t update = p.steps.size();
  for (size_t i = 0; i < p.steps.size(); ++i)
    if (writes_input(p, p.steps[i])) update = std::min(update, i);
  EXPECT_EQ(update, p.steps.size() - 1);
  EXPECT_LT(first_of<loop::Check>(p), update);
  EXPECT_TRUE(p.inputs[0].written);
  EXPECT_FALSE(p.inputs[1].written);
}

TEST(Lower, TwoInputsThatExchangeTheirContentsAreReadBeforeEitherIsWritten) {
  Program p = lowered(R"(%b_a: f32[4] = input()
%b_b: f32[4] = input()
%t: f32[4] = aten::clone(%b_a)
%u: f32[4] = aten::copy_(%b_a, %b_b)
%v: f32[4] = aten::copy_(%b_b, %t)
return %t
)");
  bool written = false;
  std::vector<bool> overwritten(p.buffers.size());
  for (const Step& step : p.steps) {
    for_each_read(p, step, [&](BufferId b) { EXPECT_FALSE(overwritten[b]) << p.buffers[b].name; });
    for_each_write(p, step, [&](BufferId b) {
      if (p.buffers[b].role == Role::state) overwritten[b] = written = true;
    });
  }
  EXPECT_TRUE(written);
}

TEST(Lower, AnOutputThatIsAnInputAViewOrAnotherOutputIsACopy) {
  Program p = lowered(
      "%x: f32[4, 3] = input()\n%e: f32[4, 3] = aten::exp(%x)\n%t: f32[3, 4][1, 3] = aten::t(%e)\n"
      "return %x\nreturn %e\nreturn %t\nreturn %e\n");
  std::vector<BufferId> results;
  for (const Output& o : p.outputs) results.push_back(o.buffer);
  ASSERT_EQ(results.size(), 4u);
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(p.buffers[results[i]].role, Role::output);
    EXPECT_EQ(p.buffers[results[i]].view_of, no_buffer);
    for (size_t j = 0; j < i; ++j) EXPECT_NE(results[i], results[j]);
  }
}

TEST(Lower, AViewThatItsBaseDoesNotAllowGetsACopyThatDoes) {
  Graph graph = parse_graph(
      "%x: f32[3, 4][1, 3] = input()\n%e: f32[3, 4] = aten::exp(%x)\n%v: f32[12] = aten::view(%e, [12])\n"
      "%y: f32[12] = aten::neg(%v)\nreturn %y\n",
      registry());
  Program p = lower(graph.body(), {});
  std::string made = to_text(p);
  for (const Buffer& b : p.buffers)
    if (b.name == "v") { EXPECT_EQ(b.strides, Sizes{1}) << made; }
}

TEST(Lower, ACompositeMustHaveBeenDecomposed) {
  Graph graph =
      parse_graph("%x: f32[2, 3] = input()\n%w: f32[4, 3] = input()\n%y: f32[2, 4] = aten::linear(%x, %w)\nreturn %y\n",
                  registry());
  EXPECT_THROW(lower(graph.body(), {}), InternalError);
}

// The rule does not say what such a call gives, so nothing that a file says of it was compared.
TEST(Lower, RefusesWhatARuleDoesNotSupportWhateverIsSaidOfTheResult) {
  EXPECT_THROW(lowered("%g: u8[2, 4] = input()\n%i: f32[4] = input()\n%y: f32[] = aten::_embedding_bag_backward(%g, "
                       "%i, %g, %i, %g, %i, 2, False, 5, True, None)\nreturn %y\n"),
               Unsupported);
}

TEST(Lower, EveryStepKnowsTheNodeItComesFrom) {
  Program p = lowered("%x: f32[4, 3] = input()\n%y: f32[4, 3] = aten::softmax.int(%x, 1)\nreturn %y\n");
  ASSERT_EQ(p.nodes.size(), p.steps.size());
  for (uint32_t n : p.nodes) ASSERT_LT(n, p.origins.size());
}

TEST(Lower, ANumberIsReturnedAsAnExpression) {
  Program p = lowered("%x: f32[s0] = input()\n%y: f32[s0] = aten::exp(%x)\nreturn %y\nreturn 2*s0\n");
  EXPECT_EQ(p.outputs[1].buffer, no_buffer);
  EXPECT_EQ(text(p.outputs[1].number), "2*s0");
}

Program lowered_with(std::string_view graph, LoweringOptions options) {
  ExportedProgram program = program_of(graph);
  return Walk(program, {.lowering = options}).executable_after(StageName::loops)->program;
}

TEST(Lower, StatisticsOfBatchNormAreF64UnlessOptionsSayOtherwise) {
  constexpr std::string_view graph =
      "%x: f32[8, 3] = input()\n%w: f32[3] = input()\n%b: f32[3] = input()\n"
      "%y: f32[8, 3] = aten::batch_norm(%x, %w, %b, None, None, True, 0.1, 1e-05, False)\nreturn %y\n";
  auto doubles = [](const Program& p) {
    return std::count_if(p.buffers.begin(), p.buffers.end(), [](const Buffer& b) { return b.dtype == DType::f64; });
  };
  EXPECT_GE(doubles(lowered_with(graph, {})), 3);  // mean, variance, 1 / deviation
  EXPECT_EQ(doubles(lowered_with(graph, {.double_statistics = false})), 0);
}

TEST(Lower, AttentionIsProductsAndASoftmaxWhereOptionsSaySo) {
  constexpr std::string_view graph =
      "%q: f32[1, 2, 3, 4] = input()\n%k: f32[1, 2, 5, 4] = input()\n%v: f32[1, 2, 5, 4] = input()\n"
      "%y: f32[1, 2, 3, 4] = aten::scaled_dot_product_attention(%q, %k, %v)\nreturn %y\n";
  Program one = lowered_with(graph, {}), apart = lowered_with(graph, {.flash_attention = false});
  EXPECT_EQ(count_of<Attention>(one), 1u);
  EXPECT_EQ(count_of<Attention>(apart), 0u);
  EXPECT_EQ(count_of<Gemm>(apart), 2u);
}

}  // namespace
}  // namespace tenon

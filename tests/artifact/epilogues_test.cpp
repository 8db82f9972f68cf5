// Stages that are computed on blocks of an anchor's results: one step, and the bits of the interpreter of programs,
// which computes one behind the other.
#include <gtest/gtest.h>

#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/base/text.h"
#include "tenon/compile/emit_native.h"
#include "tenon/pipeline.h"
#include "tenon/plan/make_tables.h"
#include "tests/text_program.h"

namespace tenon::artifact {
namespace {

Tensor numbers(const Sizes& sizes, int64_t seed) {
  Tensor t = Tensor::empty(DType::f32, sizes);
  for (int64_t i = 0; i < t.numel().as_int(); ++i)
    t.mutable_data<float>()[i] = static_cast<float>((i * 37 + seed * 11) % 101 - 50) / 16.0f;
  return t;
}

class Epilogues : public testing::Test {
 protected:
  /// Compiled for every target it gives the interpreter's bits, and it has as many steps.
  void expect_steps(const std::string& graph, const std::vector<std::vector<Sizes>>& calls, size_t steps) {
    ExportedProgram program = program_of(graph);
    for (NamedTensor& n : program.state) n.tensor = numbers(n.tensor.sizes(), 7);
    Walk walk(program);
    Compilable made = prepare_to_compile(walk);
    std::vector<std::string> told =
        plan::make_tables(made.executable->program, made.executable->convention, {.described = true}).steps;
    EXPECT_EQ(told.size(), steps) << join(told, "\n");
    auto compare = [&](const std::shared_ptr<const CompiledProgram>& compiled, const std::string& who) {
      CompiledState state(compiled);
      CompiledSession session(compiled);
      for (const std::vector<Sizes>& sizes : calls) {
        std::vector<CallArg> inputs;
        for (size_t i = 0; i < sizes.size(); ++i) inputs.emplace_back(numbers(sizes[i], static_cast<int64_t>(i)));
        std::unique_ptr<State> own = made.state->copy();
        std::vector<CallArg> want = Session(made.executable).run(*own, inputs).outputs;
        std::vector<CallArg> got = session.run(state, inputs).outputs;
        ASSERT_EQ(got.size(), want.size());
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_EQ(values_of(got[i].as<Tensor>()), values_of(want[i].as<Tensor>())) << who << ", result " << i;
      }
    };
    compare(interpret_compiled(*made.executable, *made.state), "the interpreter of kernels");
    for (Target target : {Target::x86_64_v3, Target::x86_64_v4}) {
      if (!compile::machine_has(target == Target::x86_64_v3 ? compile::Isa::v3 : compile::Isa::v4)) continue;
      std::vector<std::byte> bytes = compile_program(*made.executable, *made.state, {.targets = {target}});
      for (int threads : {1, 3})
        compare(CompiledProgram::open(bytes, {.threads = threads}), text(name(target), " on ", threads, " threads"));
    }
  }
};

TEST_F(Epilogues, OfAProductOfManyColumns) {
  expect_steps(R"(%p_w: f32[300, 20] = input()
%p_b: f32[300] = input()
%x: f32[100, 20] = input()
%u: f32[100, 300] = aten::linear(%x, %p_w, %p_b)
%y: f32[100, 300] = aten::hardswish(%u)
return %y
)",
               {{{100, 20}}}, 1);
}

TEST_F(Epilogues, OfRowsWhoseNumberTheRunTells) {
  expect_steps(R"(%p_w: f32[150, 20] = input()
%x: f32[s0, 20] = input()
%g: f32[150] = input()
%u: f32[s0, 150] = aten::linear(%x, %p_w)
%h: f32[s0, 150] = aten::hardswish(%u)
%y: f32[s0, 150] = aten::mul.Tensor(%h, %g)
return %y
)",
               {{{1, 20}, {150}}, {{8, 20}, {150}}, {{9, 20}, {150}}, {{97, 20}, {150}}}, 1);
}

TEST_F(Epilogues, WithAFactorForEveryImageAndChannel) {
  expect_steps(R"(%p_w: f32[24, 8, 1, 1] = input()
%x: f32[3, 8, 7, 7][392, 1, 56, 8] = input()
%g: f32[3, 24, 1, 1] = input()
%c: f32[3, 24, 7, 7][1176, 1, 168, 24] = aten::convolution(%x, %p_w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
%h: f32[3, 24, 7, 7][1176, 1, 168, 24] = aten::hardswish(%c)
%y: f32[3, 24, 7, 7][1176, 1, 168, 24] = aten::mul.Tensor(%h, %g)
return %y
)",
               {{{3, 8, 7, 7}, {3, 24, 1, 1}}}, 1);
}

TEST_F(Epilogues, OfAConvolutionOfEveryChannelByItself) {
  for (std::string channels : {"16", "24", "72"}) {
    std::string graph = R"(%p_w: f32[C, 1, 3, 3] = input()
%p_v: f32[C, C, 1, 1] = input()
%x: f32[2, C, 9, 9] = input()
%a: f32[2, C, 9, 9] = aten::convolution(%x, %p_v, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
%h: f32[2, C, 9, 9] = aten::hardswish(%a)
%c: f32[2, C, 5, 5] = aten::convolution(%h, %p_w, None, [2, 2], [1, 1], [1, 1], False, [0, 0], C)
%k: f32[2, C, 5, 5] = aten::hardswish(%c)
%m: f32[2, C, 1, 1] = aten::mean.dim(%k, [2, 3], True)
return %m
)";
    for (size_t at = 0; (at = graph.find('C')) != std::string::npos;) graph.replace(at, 1, channels);
    // The image is turned by a step of its own, then two convolutions and the mean.
    expect_steps(graph, {{{2, std::stoll(channels), 9, 9}}}, 4);
  }
}

TEST_F(Epilogues, OnBlocksOfChannels) {
  expect_steps(R"(%p_w: f32[150, 1, 5, 5] = input()
%p_v: f32[150, 20, 1, 1] = input()
%x: f32[1, 20, 7, 7] = input()
%a: f32[1, 150, 7, 7] = aten::convolution(%x, %p_v, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
%h: f32[1, 150, 7, 7] = aten::hardswish(%a)
%c: f32[1, 150, 7, 7] = aten::convolution(%h, %p_w, None, [1, 1], [2, 2], [1, 1], False, [0, 0], 150)
%k: f32[1, 150, 7, 7] = aten::hardswish(%c)
%m: f32[1, 150, 1, 1] = aten::mean.dim(%k, [2, 3], True)
return %m
)",
               {{{1, 20, 7, 7}}}, 4);
}

TEST_F(Epilogues, LeaveAResultThatIsReadElsewhere) {
  expect_steps(R"(%p_w: f32[40, 20] = input()
%x: f32[50, 20] = input()
%u: f32[50, 40] = aten::linear(%x, %p_w)
%h: f32[50, 40] = aten::hardswish(%u)
%s: f32[50] = aten::sum.dim_IntList(%u, [1])
return %h
return %s
)",
               {{{50, 20}}}, 2);
}

TEST_F(Epilogues, OfTheSecondOfTwoProductsReadTheFirst) {
  expect_steps(R"(%p_w: f32[200, 20] = input()
%p_v: f32[200, 20] = input()
%x: f32[50, 20] = input()
%u: f32[50, 200] = aten::linear(%x, %p_w)
%v: f32[50, 200] = aten::linear(%x, %p_v)
%h: f32[50, 200] = aten::hardswish(%u)
%y: f32[50, 200] = aten::mul.Tensor(%h, %v)
return %y
)",
               {{{50, 20}}}, 2);
}

}  // namespace
}  // namespace tenon::artifact

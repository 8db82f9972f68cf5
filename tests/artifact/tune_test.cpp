// Choices that are measured: each gives results within rounding of the other, and equal questions are asked once.
#include "tenon/artifact/tune.h"

#include <gtest/gtest.h>

#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/artifact/in_process.h"
#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon::artifact {
namespace {

Tensor numbers(const Sizes& sizes, int64_t seed) {
  Tensor t = Tensor::empty(DType::f32, sizes);
  for (int64_t i = 0; i < t.numel().as_int(); ++i)
    t.mutable_data<float>()[i] = static_cast<float>((i * 37 + seed * 11) % 101 - 50) / 64.0f;
  return t;
}

ExportedProgram two_convolutions() {
  ExportedProgram program = program_of(R"(%p_w: f32[32, 16, 3, 3] = input()
%p_v: f32[16, 32, 3, 3] = input()
%p_u: f32[16, 16, 1, 1] = input()
%x: f32[1, 16, 14, 14] = input()
%a: f32[1, 32, 14, 14] = aten::conv2d(%x, %p_w, None, [1, 1], [1, 1])
%b: f32[1, 32, 14, 14] = aten::relu(%a)
%c: f32[1, 16, 14, 14] = aten::conv2d(%b, %p_v, None, [1, 1], [1, 1])
%d: f32[1, 16, 14, 14] = aten::relu(%c)
%e: f32[1, 16, 14, 14] = aten::conv2d(%d, %p_u)
return %e
)");
  for (NamedTensor& n : program.state) n.tensor = numbers(n.tensor.sizes(), 7);
  return program;
}

std::vector<float> results(const ExportedProgram& program, optimize::MethodChoice choice) {
  WalkOptions options;
  options.packing.methods = std::move(choice);
  Walk walk(program, std::move(options));
  Compilable made = prepare_to_compile(walk);
  auto compiled = interpret_compiled(*made.executable, *made.state);
  CompiledState state(compiled);
  CompiledSession session(compiled);
  return values_of(session.run(state, {numbers({1, 16, 14, 14}, 3)}).outputs[0].as<Tensor>());
}

TEST(Tune, EachMethodCanBeChosen) {
  const ExportedProgram program = two_convolutions();
  size_t asked = 0;
  auto always = [&](loop::ConvMethod method) {
    return [&asked, method](const loop::Program&, const loop::Convolution&) { return ++asked, std::optional(method); };
  };
  const std::vector<float> direct = results(program, always(loop::ConvMethod::direct));
  const std::vector<float> winograd = results(program, always(loop::ConvMethod::winograd));
  EXPECT_EQ(asked, 4u);
  ASSERT_EQ(direct.size(), winograd.size());
  EXPECT_NE(direct, winograd);  // sums are rounded in other places
  for (size_t i = 0; i < direct.size(); ++i) EXPECT_NEAR(direct[i], winograd[i], 1e-3f) << i;
}

TEST(Tune, MeasuresEachConvolutionOnce) {
  if (best_execution() != Execution::native) GTEST_SKIP() << "this machine runs no code of ours";
  const ExportedProgram program = two_convolutions();
  Tuner tuner;
  std::vector<std::optional<loop::ConvMethod>> told;
  auto ask = [&](const loop::Program& p, const loop::Convolution& c) {
    told.push_back(tuner.choose(p, c));
    EXPECT_EQ(tuner.choose(p, c), told.back());
    return told.back();
  };
  const std::vector<float> tuned = results(program, ask);
  ASSERT_EQ(tuner.measured().size(), 2u);
  for (const Tuner::Measured& m : tuner.measured()) {
    ASSERT_EQ(m.us.size(), 2u);
    EXPECT_GT(std::min(m.us[0], m.us[1]), 0);
  }
  size_t next = 0;
  EXPECT_EQ(tuned, results(program, [&](const loop::Program&, const loop::Convolution&) { return told.at(next++); }));
}

}  // namespace
}  // namespace tenon::artifact

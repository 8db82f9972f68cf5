// The training step as machine code beside the interpreted one.
#include <gtest/gtest.h>

#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/pipeline.h"
#include "tenon/train/mode.h"
#include "tenon/train/training_step.h"
#include "tests/text_program.h"

namespace tenon::train {
namespace {

class Compiled : public testing::TestWithParam<std::string> {};

TEST_P(Compiled, LearnsAsTheInterpreterDoes) {
  ExportedProgram program = open_program(TENON_TEST_DATA "/../../examples/digits/digits_cnn.pt2");
  TrainingStep step = make_training_step(in_mode(program, Mode::train), cross_entropy(), optimizer_named(GetParam()),
                                         {.clip_norm = 1});
  std::unique_ptr<State> state = initial_state(step, program, 5);
  auto executable = prepare(step.update);
  auto compiled = artifact::CompiledProgram::open(
      artifact::compile_program(*executable, *state, {.updatable = true}), {.threads = 1});
  artifact::CompiledState other(compiled, 5);
  artifact::CompiledSession fast(compiled);
  Session session(executable);
  Tensor images = Tensor::empty(DType::f32, {8, 1, 8, 8}), target = Tensor::empty(DType::i64, {8});
  for (int64_t i = 0; i < 8 * 64; ++i) images.mutable_data<float>()[i] = static_cast<float>(i * 37 % 101) / 100;
  for (int64_t i = 0; i < 8; ++i) target.mutable_data<int64_t>()[i] = i % 10;
  for (int i = 0; i < 5; ++i) {
    double a = scalar_value(session.run(*state, {images, target}).outputs[0].as<Tensor>());
    double b = scalar_value(fast.run(other, {images, target}).outputs[0].as<Tensor>());
    EXPECT_NEAR(a, b, 1e-4) << "step " << i;
  }
  for (const std::string& name : state->names()) {
    std::vector<float> a, b;
    if (state->find(name)->dtype() != DType::f32) continue;
    EXPECT_EQ(values_of(*state->find(name)).size(), values_of(other.get(name)).size()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Compiled,
                         testing::Values("sgd,lr=0.05,momentum=0.9", "adam", "adamw", "rmsprop", "adagrad"));

}  // namespace
}  // namespace tenon::train

// The training step as machine code beside the interpreted one.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/pipeline.h"
#include "tenon/train/mode.h"
#include "tenon/train/training_step.h"
#include "tests/text_program.h"

namespace tenon::train {
namespace {

// The digits network, which drops out at random, joined with an optimizer.
struct Digits {
  ExportedProgram program = open_program(TENON_TEST_DATA "/../../examples/digits/digits_cnn.pt2");
  TrainingStep step;
  std::shared_ptr<const Executable> executable;
  std::shared_ptr<const artifact::CompiledProgram> compiled;

  explicit Digits(const std::string& optimizer) {
    step = make_training_step(in_mode(program, Mode::train), cross_entropy(), optimizer_named(optimizer),
                              {.clip_norm = 1});
    executable = prepare(step.update);
    compiled = artifact::CompiledProgram::open(
        artifact::compile_program(*executable, *initial_state(step, program), {.updatable = true}), {});
  }
};

std::vector<CallArg> batch() {
  Tensor images = Tensor::empty(DType::f32, {8, 1, 8, 8}), target = Tensor::empty(DType::i64, {8});
  for (int64_t i = 0; i < 8 * 64; ++i) images.mutable_data<float>()[i] = static_cast<float>(i * 37 % 101) / 100;
  for (int64_t i = 0; i < 8; ++i) target.mutable_data<int64_t>()[i] = i % 10;
  return {images, target};
}

double loss_of(const RunResult& result) { return scalar_value(result.outputs[0].as<Tensor>()); }

class Compiled : public testing::TestWithParam<std::string> {};

TEST_P(Compiled, LearnsAsTheInterpreterDoes) {
  Digits digits(GetParam());
  std::unique_ptr<State> state = initial_state(digits.step, digits.program, 5);
  artifact::CompiledState other(digits.compiled, 5);
  artifact::CompiledSession fast(digits.compiled);
  Session session(digits.executable);
  for (int i = 0; i < 5; ++i)
    EXPECT_NEAR(loss_of(session.run(*state, batch())), loss_of(fast.run(other, batch())), 1e-4) << "step " << i;
  EXPECT_EQ(scalar_integer(other.get("optimizer.step")), 5);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, Compiled,
                         testing::Values("sgd,lr=0.05,momentum=0.9", "adam", "adamw", "rmsprop", "adagrad"));

// Eight trainings with seeds of their own, at once and one after the other: every loss bit for bit.
std::vector<std::vector<double>> losses_of_eight(bool at_once,
                                                 const std::function<std::vector<double>(uint64_t seed)>& train) {
  std::vector<std::vector<double>> losses(8);
  std::vector<std::thread> threads;
  for (uint64_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { losses[i] = train(i); });
    if (!at_once) threads.back().join();
  }
  for (std::thread& t : threads)
    if (t.joinable()) t.join();
  return losses;
}

TEST(EightThreads, TrainEightStatesOfOneStep) {
  Digits digits("adamw,lr=0.01");
  auto interpreted = [&](uint64_t seed) {
    std::unique_ptr<State> state = initial_state(digits.step, digits.program, seed);
    Session session(digits.executable);
    std::vector<double> losses;
    for (int i = 0; i < 6; ++i) losses.push_back(loss_of(session.run(*state, batch())));
    return losses;
  };
  auto compiled = [&](uint64_t seed) {
    artifact::CompiledState state(digits.compiled, seed);
    artifact::CompiledSession session(digits.compiled);
    std::vector<double> losses;
    for (int i = 0; i < 6; ++i) losses.push_back(loss_of(session.run(state, batch())));
    return losses;
  };
  auto alone = losses_of_eight(false, interpreted);
  EXPECT_NE(alone[0], alone[1]);
  EXPECT_EQ(losses_of_eight(true, interpreted), alone);
  EXPECT_EQ(losses_of_eight(true, compiled), losses_of_eight(false, compiled));
}

}  // namespace
}  // namespace tenon::train

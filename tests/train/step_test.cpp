#include <gtest/gtest.h>

#include <set>

#include "tenon/ops/arithmetic.h"
#include "tenon/ops/reduction.h"
#include "tenon/ops/sign.h"
#include "tenon/pipeline.h"
#include "tenon/train/training_step.h"
#include "tests/text_program.h"

namespace tenon::train {
namespace {

// y = w * x: with the mean of squares against t the gradient of w is 2/n * sum((w*x - t) * x).
constexpr const char* scaled = R"(%p_w: f32[1] = input()
%p_unused: f32[2] = input()
%x: f32[4] = input()
%y: f32[4] = aten::mul.Tensor(%x, %p_w)
return %y
)";

ExportedProgram program(float w = 2) {
  ExportedProgram out = program_of(scaled);
  out.state[0].tensor = floats({1}, {w});
  out.state[1].tensor = floats({2}, {5, 6});
  return out;
}

std::vector<CallArg> batch() { return {floats({4}, {1, 2, 3, 4}), floats({4}, {1, 2, 3, 4})}; }

float value(const State& state, const std::string& name) { return values_of(*state.find(name)).at(0); }

float run(const FunctionalProgram& step, State& state) {
  Session session(prepare(step));
  return static_cast<float>(scalar_value(session.run(state, batch()).outputs[0].as<Tensor>()));
}

TEST(TrainingStep, MovesAParameterAgainstItsGradient) {
  ExportedProgram p = program();
  TrainingStep step = make_training_step(p, mse(), sgd({.lr = 0.1}));
  std::unique_ptr<State> state = initial_state(step, p);
  EXPECT_FLOAT_EQ(run(step.update, *state), 7.5f);  // mean of 1, 4, 9, 16
  EXPECT_FLOAT_EQ(value(*state, "w"), 2 - 0.1f * 15);
  EXPECT_EQ(scalar_integer(*state->find("optimizer.step")), 1);
}

TEST(TrainingStep, MovesAHalfOfNoDimensions) {
  ExportedProgram p = program_of(R"(%p_w: f16[] = input()
%x: f32[4] = input()
%y: f32[4] = aten::mul.Tensor(%x, %p_w)
return %y
)");
  Tensor w = Tensor::empty(DType::f16, {});
  w.mutable_data<uint16_t>()[0] = 0x4000;  // 2
  p.state[0].tensor = w;
  for (const char* optimizer : {"sgd,lr=0.1,momentum=0.9", "adamw", "rmsprop", "adagrad"}) {
    TrainingStep step = make_training_step(p, mse(), optimizer_named(optimizer));
    std::unique_ptr<State> state = initial_state(step, p);
    EXPECT_FLOAT_EQ(run(step.update, *state), 7.5f) << optimizer;
    EXPECT_LT(scalar_value(*state->find("master.w")), 2) << optimizer;
    EXPECT_EQ(state->find("master.w")->dtype(), DType::f32) << optimizer;
  }
}

TEST(TrainingStep, LeavesAloneWhatTheLossDoesNotDependOn) {
  ExportedProgram p = program();
  TrainingStep step = make_training_step(p, mse(), adamw({.weight_decay = 0.5}));
  EXPECT_EQ(step.trained, std::vector<std::string>{"w"});
  EXPECT_EQ(step.unreached, std::vector<std::string>{"unused"});
  std::unique_ptr<State> state = initial_state(step, p);
  run(step.update, *state);
  EXPECT_EQ(values_of(*state->find("unused")), (std::vector<float>{5, 6}));
}

// Each of them is read and written once then: memory is what an optimizer waits for.
TEST(TrainingStep, UpdatesAParameterAndItsMomentsInOneStage) {
  ExportedProgram p = program_of(R"(%p_w: f32[80, 300] = input()
%x: f32[4, 300] = input()
%y: f32[4, 80] = aten::linear(%x, %p_w)
return %y
)");
  auto executable = prepare(make_training_step(p, mse(), adamw({.weight_decay = 0.5})).update);
  size_t updating = 0;
  for (const loop::Step& step : executable->program.steps) {
    std::set<std::string> written;
    loop::for_each_write(executable->program, step, [&](loop::BufferId b) {
      const loop::Buffer& buffer = executable->program.buffers[b];
      if (buffer.sizes == Sizes{80, 300} && buffer.role == loop::Role::state) written.insert(buffer.name);
    });
    if (written.empty()) continue;
    ++updating;
    EXPECT_EQ(written.size(), 3u);
  }
  EXPECT_EQ(updating, 1u) << to_text(executable->program);
}

TEST(TrainingStep, DoesNotWriteTheProgramItWasMadeFrom) {
  ExportedProgram p = program();
  TrainingStep step = make_training_step(p, mse(), sgd({.lr = 0.1}));
  std::unique_ptr<State> state = initial_state(step, p);
  run(step.update, *state);
  EXPECT_EQ(values_of(p.state[0].tensor), std::vector<float>{2});
}

TEST(TrainingStep, AveragesGradientsOverMicroBatches) {
  ExportedProgram p = program();
  TrainingStep step = make_training_step(p, mse(), sgd({.lr = 0.1}), {.accumulate = 2});
  ASSERT_TRUE(step.accumulate.has_value());
  std::unique_ptr<State> state = initial_state(step, p);
  run(*step.accumulate, *state);
  EXPECT_FLOAT_EQ(value(*state, "w"), 2);
  EXPECT_FLOAT_EQ(value(*state, "gradient.w"), 7.5f);
  run(step.update, *state);
  EXPECT_FLOAT_EQ(value(*state, "w"), 2 - 0.1f * 15);
  EXPECT_FLOAT_EQ(value(*state, "gradient.w"), 0);
}

TEST(TrainingStep, MakesLongGradientsShorter) {
  ExportedProgram p = program();
  TrainingStep step = make_training_step(p, mse(), sgd({.lr = 1}), {.clip_norm = 3});
  std::unique_ptr<State> state = initial_state(step, p);
  run(step.update, *state);
  EXPECT_NEAR(value(*state, "w"), 2 - 3, 1e-5);
}

TEST(TrainingStep, ALossThatIsNotFiniteWritesNothing) {
  ExportedProgram p = program(std::numeric_limits<float>::infinity());
  TrainingStep step = make_training_step(p, mse(), sgd({.lr = 0.1, .momentum = 0.9}));
  std::unique_ptr<State> state = initial_state(step, p);
  try {
    run(step.update, *state);
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(not_finite), std::string::npos) << error.what();
  }
  EXPECT_EQ(value(*state, "w"), std::numeric_limits<float>::infinity());
  EXPECT_EQ(value(*state, "optimizer.momentum_buffer.w"), 0);
  EXPECT_EQ(scalar_integer(*state->find("optimizer.step")), 0);
}

TEST(TrainingStep, FrozenParametersAndGroupsGoByPattern) {
  ExportedProgram p = program_of(R"(%p_a.weight: f32[1] = input()
%p_a.bias: f32[1] = input()
%p_b.weight: f32[1] = input()
%x: f32[4] = input()
%y: f32[4] = aten::mul.Tensor(%x, %p_a.weight)
%z: f32[4] = aten::add.Tensor(%y, %p_a.bias)
%u: f32[4] = aten::mul.Tensor(%z, %p_b.weight)
return %u
)");
  for (NamedTensor& t : p.state) t.tensor = floats({1}, {2});
  TrainingStep step =
      make_training_step(p, mse(), adamw({.lr = 0.1, .weight_decay = 0.5}),
                         {.frozen = {"b.*"}, .groups = {{.pattern = "*.bias", .lr = 0.2, .weight_decay = 0.0}}});
  EXPECT_EQ(step.trained, (std::vector<std::string>{"a.weight", "a.bias"}));
  std::unique_ptr<State> state = initial_state(step, p);
  run(step.update, *state);
  EXPECT_NEAR(value(*state, "a.weight"), 2 * (1 - 0.1 * 0.5) - 0.1, 1e-5);  // adam's first step has the length lr
  EXPECT_NEAR(value(*state, "a.bias"), 2 - 0.2, 1e-5);
  EXPECT_EQ(value(*state, "b.weight"), 2);
  EXPECT_THROW(make_training_step(p, mse(), sgd(), {.frozen = {"c.*"}}), Error);
  EXPECT_THROW(make_training_step(p, mse(), sgd(), {.frozen = {"*"}}), Error);
}

TEST(TrainingStep, HalfPrecisionIsTrainedInMasterWeights) {
  ExportedProgram p = program_of(R"(%p_w: bf16[1] = input()
%x: f32[4] = input()
%w: f32[1] = aten::_to_copy(%p_w, dtype=f32)
%y: f32[4] = aten::mul.Tensor(%x, %w)
return %y
)");
  p.state[0].tensor = Tensor::empty(DType::bf16, {1});
  p.state[0].tensor.mutable_data<uint16_t>()[0] = 0x4000;  // 2
  TrainingStep step = make_training_step(p, mse(), sgd({.lr = 1e-4}));
  std::unique_ptr<State> state = initial_state(step, p);
  Session session(prepare(step.update));
  for (int i = 0; i < 3; ++i) session.run(*state, batch());
  EXPECT_LT(value(*state, "master.w"), 1.9956f);  // below what bf16 tells apart
  EXPECT_EQ(state->find("w")->data<uint16_t>()[0], 0x4000 - 1);
}

TEST(TrainingStep, ALossIsAnOrdinaryFunction) {
  ExportedProgram p = program();
  Loss absolute{.name = "l1",
                .targets = [](auto outputs) { return std::vector<Target>{{.meta = outputs[0]}}; },
                .value = [](auto outputs, auto targets) { return mean_all(abs(outputs[0] - targets[0])); },
                .right = {}};
  TrainingStep step = make_training_step(p, absolute, sgd({.lr = 0.1}));
  std::unique_ptr<State> state = initial_state(step, p);
  EXPECT_FLOAT_EQ(run(step.update, *state), 2.5f);
  EXPECT_FLOAT_EQ(value(*state, "w"), 2 - 0.1f * 2.5f);
}

TEST(TrainingStep, SchedulesAreFollowedInTheGraph) {
  ExportedProgram p = program();
  // Two updates of warmup, then a cosine over three.
  Schedule schedule = schedule_named("cosine,warmup=2", {.steps = 5, .steps_per_epoch = 5});
  TrainingStep step = make_training_step(p, mse(), sgd({.lr = 0.01}), {.schedule = schedule});
  std::unique_ptr<State> state = initial_state(step, p);
  Session session(prepare(step.update));
  double w = 2;
  for (double lr : {0.005, 0.01, 0.01, 0.0075, 0.0025}) {
    session.run(*state, batch());
    w -= lr * 15 * (w - 1);
    EXPECT_NEAR(value(*state, "w"), w, 1e-5);
  }
}

}  // namespace
}  // namespace tenon::train

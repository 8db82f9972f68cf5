// How much memory a training step takes: no copy of the state, no holes in the arena.
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/abi.h"
#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/pipeline.h"
#include "tenon/plan/make_tables.h"
#include "tenon/train/runners.h"
#include "tenon/train/training_step.h"
#include "tests/text_program.h"

namespace tenon::train {
namespace {

// Convolutions with batch norm, a residual sum, pooling and a linear layer: what a step of training has to keep.
std::string network() {
  std::string out =
      "%x: f32[4, 3, 32, 32] = input()\n%p_stem: f32[16, 3, 3, 3] = input()\n%p_head: f32[10, 16] = input()\n";
  for (int i = 0; i < 4; ++i)
    out += text("%p_w", i, ": f32[16, 16, 3, 3] = input()\n%p_g", i, ": f32[16] = input()\n%p_b", i,
                ": f32[16] = input()\n", "%b_m", i, ": f32[16] = input()\n%b_v", i, ": f32[16] = input()\n");
  out += "%h: f32[4, 16, 32, 32] = aten::conv2d(%x, %p_stem, None, [1, 1], [1, 1])\n";
  std::string last = "h";
  for (int i = 0; i < 4; ++i) {
    out += text("%c", i, ": f32[4, 16, 32, 32] = aten::conv2d(%", last, ", %p_w", i, ", None, [1, 1], [1, 1])\n");
    out += text("%n", i, ": f32[4, 16, 32, 32] = aten::batch_norm(%c", i, ", %p_g", i, ", %p_b", i, ", %b_m", i,
                ", %b_v", i, ", True, 0.1, 1e-05, False)\n");
    out += text("%s", i, ": f32[4, 16, 32, 32] = aten::add.Tensor(%n", i, ", %", last, ")\n");
    out += text("%r", i, ": f32[4, 16, 32, 32] = aten::relu(%s", i, ")\n");
    last = text("r", i);
  }
  out += text("%pool: f32[4, 16] = aten::mean.dim(%", last, ", [2, 3])\n");
  return out + "%y: f32[4, 10] = aten::linear(%pool, %p_head)\n%loss: f32[] = aten::mean(%y)\nreturn %loss\n";
}

ExportedProgram trainable() {
  ExportedProgram program = program_of(network());
  for (size_t i = 0; i < program.graph->inputs.size(); ++i)
    if (program.signature.inputs[i].kind == InputKind::parameter)
      program.graph->info(*program.graph->inputs[i].get<Value>()).meta.requires_grad = true;
  for (NamedTensor& t : program.state) {
    t.tensor = counting(t.tensor.sizes());
    float* numbers = t.tensor.mutable_data<float>();
    for (int64_t i = 0; i < t.tensor.numel().as_int(); ++i) numbers[i] = static_cast<float>(i % 7 + 1) / 64;
  }
  return program;
}

struct Arena {
  uint64_t bytes;
  uint32_t first, last;
};

// A size of a program without symbols.
int64_t value_of(std::span<const int64_t> words) {
  std::vector<int64_t> stack;
  auto pop = [&] {
    int64_t v = stack.back();
    stack.pop_back();
    return v;
  };
  for (size_t i = 0; i < words.size(); ++i) {
    const auto opcode = static_cast<tenon_opcode>(words[i] & 0xff);
    if (opcode == TENON_OP_CONST || opcode == TENON_OP_CONST_WIDE) {
      stack.push_back(opcode == TENON_OP_CONST ? words[i] >> 8 : words[++i]);
      continue;
    }
    const int64_t b = pop(), a = pop();
    switch (opcode) {
      case TENON_OP_ADD: stack.push_back(a + b); break;
      case TENON_OP_SUB: stack.push_back(a - b); break;
      case TENON_OP_MUL: stack.push_back(a * b); break;
      case TENON_OP_MIN: stack.push_back(std::min(a, b)); break;
      case TENON_OP_MAX: stack.push_back(std::max(a, b)); break;
      case TENON_OP_FLOOR_DIV: stack.push_back(a / b); break;
      case TENON_OP_CEIL_DIV: stack.push_back((a + b - 1) / b); break;
      default: ADD_FAILURE() << "opcode " << opcode; stack.push_back(0);
    }
  }
  return stack.at(0);
}

std::vector<Arena> arena_of(const std::vector<std::byte>& tables) {
  tenon_header header;
  std::memcpy(&header, tables.data(), sizeof header);
  auto at = [&]<class T>(const tenon_table& table, size_t i, T) {
    T out;
    std::memcpy(&out, tables.data() + table.offset + i * sizeof(T), sizeof out);
    return out;
  };
  std::vector<Arena> out;
  for (size_t i = 0; i < header.buffers.count; ++i) {
    auto b = at(header.buffers, i, tenon_buffer{});
    if (b.role != TENON_ROLE_ARENA || b.root != TENON_NONE) continue;
    auto expr = at(header.exprs, b.bytes, tenon_expr{});
    std::vector<int64_t> words;
    for (uint32_t k = 0; k < expr.words.count; ++k) words.push_back(at(header.words, expr.words.first + k, int64_t{}));
    out.push_back({static_cast<uint64_t>(value_of(words)), b.first, b.last});
  }
  return out;
}

uint64_t peak_of(const std::vector<Arena>& arena) {
  uint64_t most = 0;
  for (const Arena& begins : arena) {
    uint64_t now = 0;
    for (const Arena& a : arena)
      if (a.first <= begins.first && a.last >= begins.first) now += a.bytes;
    most = std::max(most, now);
  }
  return most;
}

TrainingStep step_of(const ExportedProgram& program, std::optional<double> budget = std::nullopt) {
  return make_training_step(program, loss_named("none"), optimizer_named("adamw,lr=0.01"), {.memory_budget = budget});
}

Tensor images() {
  Tensor x = counting({4, 3, 32, 32});
  for (int64_t i = 0; i < x.numel().as_int(); ++i) x.mutable_data<float>()[i] = static_cast<float>(i * 37 % 101) / 100;
  return x;
}

TEST(Memory, TheArenaIsLittleMoreThanWhatLivesAtOnce) {
  ExportedProgram program = trainable();
  for (std::optional<double> budget : {std::optional<double>(), std::optional(1.0), std::optional(0.3)}) {
    TrainingStep step = step_of(program, budget);
    std::shared_ptr<const Executable> executable = prepare(step.update);
    std::unique_ptr<State> state = initial_state(step, program);
    auto planned = plan::make_tables(executable->program, executable->convention, {.updatable = true});
    const uint64_t peak = peak_of(arena_of(planned.tables.bytes()));
    auto compiled = artifact::CompiledProgram::open(artifact::compile_program(*executable, *state, {.updatable = true}),
                                                    {.threads = 1});
    artifact::CompiledState own(compiled);
    artifact::CompiledSession session(compiled);
    session.run(own, {images()});
    EXPECT_GT(peak, 1u << 20);
    EXPECT_LE(static_cast<double>(session.memory()), 1.15 * static_cast<double>(peak) + (1 << 20));
  }
}

TEST(Memory, AMemoryBudgetChangesNoBitAndNeedsLess) {
  ExportedProgram program = trainable();
  std::vector<float> expected;
  uint64_t plain = 0;
  for (std::optional<double> budget : {std::optional<double>(), std::optional(0.4), std::optional(0.0)}) {
    TrainingStep step = step_of(program, budget);
    std::unique_ptr<State> state = initial_state(step, program);
    Session session(prepare(step.update, StageName::loops));
    for (int i = 0; i < 2; ++i) session.run(*state, {images()});
    std::vector<float> now;
    for (const std::string& name : step.trained)
      for (float v : values_of(*state->find(name))) now.push_back(v);
    if (expected.empty()) expected = now;
    EXPECT_EQ(now, expected);
    std::shared_ptr<const Executable> executable = prepare(step.update);
    auto planned = plan::make_tables(executable->program, executable->convention, {.updatable = true});
    const uint64_t peak = peak_of(arena_of(planned.tables.bytes()));
    if (budget) EXPECT_LT(peak, plain) << *budget;
    else plain = peak;
  }
}

// What is trained is the tensor of the state itself, at every step, and zeros are not stored.
TEST(Memory, CompiledProgramsOfATrainingShareItsState) {
  ExportedProgram program = trainable();
  TrainingStep step = step_of(program);
  std::unique_ptr<State> state = initial_state(step, program);
  std::shared_ptr<const Executable> executable = prepare(step.update);
  const size_t stored = artifact::compile_program(*executable, *state, {.updatable = true}).size();
  const size_t bare = artifact::compile_program(*executable, *state, {.updatable = true, .store_state = false}).size();
  size_t parameters = 0, all = 0;
  for (const std::string& name : state->names()) {
    all += state->find(name)->storage()->size();
    if (name.find("optimizer.") == std::string::npos) parameters += state->find(name)->storage()->size();
  }
  EXPECT_GE(stored - bare, parameters);
  EXPECT_LT(stored - bare, all / 2);
  Runners runners({executable}, std::move(state), {.compile = true, .threads = 1});
  ASSERT_TRUE(runners.compiled()) << runners.why_interpreted();
  const std::byte* before = runners.state().find("w0")->bytes();
  const std::vector<float> old = values_of(*runners.state().find("w0"));
  runners.run(0, {images()});
  EXPECT_EQ(runners.state().find("w0")->bytes(), before);
  EXPECT_NE(values_of(*runners.state().find("w0")), old);
}

}  // namespace
}  // namespace tenon::train

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <thread>

#include "tenon/artifact/compile.h"
#include "tenon/artifact/compiled_program.h"
#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon::artifact {
namespace {

std::string data(const std::string& name) { return text(TENON_TEST_DATA, "/pt2/torch-2.15/", name, ".pt2"); }

std::vector<std::byte> compiled(const std::string& name, CompileOptions options = {}) {
  ExportedProgram program = open_program(data(name));
  Walk walk(program);
  Compilable made = prepare_to_compile(walk);
  options.samples = std::move(made.samples);
  return compile_program(*made.executable, *made.state, options);
}

std::string failure(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) { return e.what(); }
  return "";
}

TEST(CompiledProgram, keeps_the_sample_inputs) {
  auto program = CompiledProgram::open(compiled("a_mlp_dynamic"), {});
  auto samples = program->samples();
  ASSERT_TRUE(samples.has_value());
  auto stored = open_program(data("a_mlp_dynamic")).samples();
  ASSERT_EQ(samples->size(), stored->leaves.size());
  for (size_t i = 0; i < samples->size(); ++i)
    EXPECT_EQ((*samples)[i].as<Tensor>().meta().sizes, stored->leaves[i].as<Tensor>().meta().sizes);
}

TEST(CompiledProgram, has_names_that_no_terminal_acts_on) {
  ExportedProgram program = program_of(R"(%p_w: f32[2, 2] = input()
%x: f32[2, 2] = input()
%y: f32[2, 2] = aten::mm(%x, %p_w)
return %y
)");
  program.state[0].name = program.signature.inputs[0].target = "w\033[2Jx\177";
  for (bool updatable : {false, true}) {
    Walk walk(program);
    Compilable made = prepare_to_compile(walk);
    auto compiled = CompiledProgram::open(compile_program(*made.executable, *made.state, {.updatable = updatable}), {});
    CompiledState state(compiled);
    const std::vector<std::string> settable =
        updatable ? std::vector<std::string>{"w\\x1b[2Jx\\x7f"} : std::vector<std::string>{};
    EXPECT_EQ(state.names(), settable);
    EXPECT_EQ(CompiledSession(compiled).run(state, {counting({2, 2})}).outputs.size(), 1u);
  }
}

TEST(CompiledProgram, serves_every_size_in_its_range) {
  auto program = CompiledProgram::open(compiled("a_mlp_dynamic"), {});
  ExportedProgram exported = open_program(data("a_mlp_dynamic"));
  CompiledState state(program);
  CompiledSession session(program);
  Sizes sizes = (*program->samples())[0].as<Tensor>().sizes();
  for (int64_t batch : {1, 2, 3, 7, 16}) {
    Sizes changed = sizes;
    changed[0] = batch;
    Tensor x = Tensor::empty(DType::f32, changed);
    for (int64_t i = 0; i < x.numel().as_int(); ++i) x.mutable_data<float>()[i] = static_cast<float>(i % 11) - 5;
    Tensor got = session.run(state, {x}).outputs[0].as<Tensor>();
    Tensor want = run_program(exported, {x}).outputs[0].as<Tensor>();
    ASSERT_EQ(got.sizes(), want.sizes());
    for (int64_t i = 0; i < got.numel().as_int(); ++i)
      EXPECT_NEAR(contiguous_copy(got).data<float>()[i], contiguous_copy(want).data<float>()[i], 1e-4);
  }
}

// The sanitizers see a list of symbols that is longer than there are symbols.
TEST(CompiledProgram, may_have_hundreds_of_buffers_of_a_size_that_changes) {
  std::string graph = "%w: f32[2, 2] = input()\n%x0: f32[s0, 2] = input()\n";
  constexpr int products = 600;
  for (int i = 0; i < products; ++i) graph += text("%x", i + 1, ": f32[s0, 2] = aten::mm(%x", i, ", %w)\n");
  ExportedProgram program = program_of(graph + text("return %x", products, "\n"));
  Walk walk(program);
  Compilable made = prepare_to_compile(walk);
  auto compiled = CompiledProgram::open(compile_program(*made.executable, *made.state, {}), {});
  CompiledState state(compiled);
  CompiledSession session(compiled);
  const Tensor mean = floats({2, 2}, {0.5, 0.5, 0.5, 0.5});
  EXPECT_EQ(values_of(session.run(state, {mean, counting({1, 2})}).outputs[0].as<Tensor>()), (std::vector{0.5f, 0.5f}));
  EXPECT_EQ(values_of(session.run(state, {mean, counting({2, 2})}).outputs[0].as<Tensor>()),
            (std::vector{0.5f, 0.5f, 2.5f, 2.5f}));
}

TEST(CompiledProgram, refuses_wrong_arguments_with_the_interpreters_sentences) {
  auto program = CompiledProgram::open(compiled("a_mlp_dynamic"), {});
  ExportedProgram exported = open_program(data("a_mlp_dynamic"));
  CompiledState state(program);
  CompiledSession session(program);
  Tensor sample = (*program->samples())[0].as<Tensor>();
  Sizes wide = sample.sizes();
  wide[1] = wide[1] + SymInt(1);
  for (const std::vector<CallArg>& wrong : {std::vector<CallArg>{},
                                            {CallArg(Tensor::empty(DType::f64, sample.sizes()))},
                                            {CallArg(Tensor::empty(DType::f32, wide))},
                                            {CallArg(Tensor::empty(DType::f32, {}))},
                                            {CallArg()}}) {
    std::string said = failure([&] { session.run(state, wrong); });
    EXPECT_NE(said, "");
    EXPECT_EQ(said, failure([&] { run_program(exported, wrong); }));
  }
}

TEST(CompiledProgram, updates_its_buffers_from_run_to_run) {
  auto program = CompiledProgram::open(compiled("i_counter"), {});
  ExportedProgram exported = open_program(data("i_counter"));
  CompiledState state(program);
  CompiledSession session(program);
  Walk walk(exported);
  std::unique_ptr<State> kept = state_of(exported);
  Session interpreted(walk.executable());
  for (int i = 0; i < 3; ++i) {
    auto inputs = *program->samples();
    RunResult got = session.run(state, inputs), want = interpreted.run(*kept, inputs);
    ASSERT_EQ(got.buffers.size(), want.buffers.size());
    for (size_t b = 0; b < got.buffers.size(); ++b) {
      EXPECT_EQ(got.buffers[b].first, want.buffers[b].first);
      Tensor x = contiguous_copy(got.buffers[b].second), y = contiguous_copy(want.buffers[b].second);
      ASSERT_EQ(x.meta().sizes, y.meta().sizes);
      size_t bytes = static_cast<size_t>(x.numel().as_int()) * item_size(x.dtype());
      EXPECT_EQ(std::memcmp(x.bytes(), y.bytes(), bytes), 0) << got.buffers[b].first << " in run " << i;
    }
  }
}

TEST(CompiledProgram, a_file_of_something_else_gets_a_sentence) {
  std::string path = (std::filesystem::temp_directory_path() / "tenon_no_artifact.so").string();
  FILE* f = std::fopen(path.c_str(), "wb");
  std::fputs(
      "\x7f"
      "ELF and nothing else",
      f);
  std::fclose(f);
  EXPECT_NE(failure([&] { CompiledProgram::open(path, {}); }), "");
  std::filesystem::remove(path);
}

TEST(CompiledProgram, sixteen_threads_share_one) {
  auto program = CompiledProgram::open(compiled("k_reductions"), {});
  auto inputs = *program->samples();
  CompiledState shared(program);
  RunResult want = CompiledSession(program).run(shared, inputs);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      CompiledSession session(program);
      for (int round = 0; round < 50; ++round) {
        RunResult got = session.run(shared, inputs);
        for (size_t k = 0; k < got.outputs.size(); ++k) {
          auto *a = got.outputs[k].get<Tensor>(), *b = want.outputs[k].get<Tensor>();
          if (!a || !*a) continue;
          Tensor x = contiguous_copy(*a), y = contiguous_copy(*b);
          size_t bytes = static_cast<size_t>(x.numel().as_int()) * item_size(x.dtype());
          if (bytes > 0 && std::memcmp(x.bytes(), y.bytes(), bytes) != 0) ++wrong;
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tenon::artifact

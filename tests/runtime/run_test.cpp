// The sample artifact gives the right numbers, however it was loaded and however many threads run it.
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "tests/runtime/sample_call.h"

namespace tenon::package {
namespace {

TEST(Run, every_batch_size_of_the_range) {
  std::vector<std::byte> bytes = sample_bytes();
  auto program = rt::Program::open_memory(bytes.data(), bytes.size());
  rt::State state(program);
  rt::Session session(program);
  for (int64_t batch = 1; batch <= sample_batch; ++batch) expect_sample(session, state, batch);
  for (int64_t batch : {3, 64, 1, 17, 3})
    expect_sample(session, state, batch);  // plans that are kept, and dropped ones
}

TEST(Run, from_a_file_that_is_gone_by_then) {
  std::optional<TemporaryFile> file(".so");
  write_sample(file->path());
  auto program = rt::Program::open(file->path());
  file.reset();
  rt::State state(program);
  rt::Session session(program);
  expect_sample(session, state, 5);
}

TEST(Run, from_memory_that_is_not_aligned) {
  std::vector<std::byte> bytes = sample_bytes(), shifted(bytes.size() + 64);
  size_t by = 64 - reinterpret_cast<uintptr_t>(shifted.data()) % 64 + 3;
  shifted.resize(bytes.size() + by);
  std::copy(bytes.begin(), bytes.end(), shifted.begin() + static_cast<std::ptrdiff_t>(by));
  auto program = rt::Program::open_memory(shifted.data() + by, bytes.size());
  rt::State state(program);
  rt::Session session(program);
  expect_sample(session, state, 5);
}

TEST(Run, from_memory_where_memory_may_not_become_executable) {
  std::vector<std::byte> bytes = sample_bytes();
  pid_t child = ::fork();
  if (child == 0) {
    if (::prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0) != 0) ::_exit(2);
    tenon_program* made = nullptr;
    if (tenon_program_open_memory(bytes.data(), bytes.size(), nullptr, &made) != TENON_OK) ::_exit(1);
    tenon_program_close(made);
    auto program = rt::Program::open_memory(bytes.data(), bytes.size());
    rt::State state(program);
    rt::Session session(program);
    ::_exit(run_sample(session, state, 2).y == expected_sample(sample_weights(), SampleCall(2).x, SampleCall(2).ids).y
                ? 0
                : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) GTEST_SKIP() << "this kernel has no PR_SET_MDWE";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Run, with_weights_in_huge_pages) {
  TemporaryFile file(".so");
  write_sample(file.path());
  tenon_options options{.struct_size = sizeof options, .huge_pages = 1};
  auto program = rt::Program::open(file.path(), &options);
  rt::State state(program);
  rt::Session session(program);
  expect_sample(session, state, 5);
}

TEST(Run, each_target_gives_the_same_bits) {
  std::vector<std::vector<float>> results;
  for (auto [v3, v4] : {std::pair(true, false), {false, true}}) {
    std::vector<std::byte> bytes = sample_bytes({.v3 = v3, .v4 = v4});
    tenon_program* made = nullptr;
    tenon_status status = tenon_program_open_memory(bytes.data(), bytes.size(), nullptr, &made);
    if (status == TENON_UNSUPPORTED && v4) {
      EXPECT_NE(std::string(tenon_last_error()).find("has code for x86-64-v4, this processor runs at most"),
                std::string::npos);
      GTEST_SKIP() << "this processor has no AVX-512";
    }
    ASSERT_EQ(status, TENON_OK) << tenon_last_error();
    EXPECT_STREQ(tenon_program_target(made), v3 ? "x86-64-v3" : "x86-64-v4");
    tenon_program_close(made);
    auto program = rt::Program::open_memory(bytes.data(), bytes.size());
    rt::State state(program);
    rt::Session session(program);
    results.push_back(run_sample(session, state, 41).y);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Run, the_number_of_threads_changes_no_bit) {
  std::vector<std::byte> bytes = sample_bytes();
  SampleCall one;
  for (int threads : {1, 2, 3, 8}) {
    rt::Pool pool(threads);
    tenon_options options{.struct_size = sizeof options, .pool = pool.get()};
    auto program = rt::Program::open_memory(bytes.data(), bytes.size(), &options);
    rt::State state(program);
    rt::Session session(program);
    for (int i = 0; i < 50; ++i) {
      SampleCall call = run_sample(session, state, 64);
      if (threads == 1 && i == 0) one = call;
      ASSERT_EQ(call.y, one.y);
      ASSERT_EQ(call.total, one.total);
      ASSERT_EQ(call.positive, one.positive);
    }
  }
}

TEST(Run, sixteen_threads_call_one_model) {
  std::vector<std::byte> bytes = sample_bytes();
  auto program = rt::Program::open_memory(bytes.data(), bytes.size());
  rt::State state(program);
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([&, t] {
      rt::Session session(program);
      for (int i = 0; i < 200; ++i) expect_sample(session, state, 1 + (t + i) % sample_batch);
    });
  for (std::thread& thread : threads) thread.join();
  int64_t runs = 0;
  state.get("runs", rt::tensor(&runs, {1}));
  EXPECT_EQ(runs, 16 * 200);
}

TEST(Run, two_models_in_one_process) {
  std::vector<std::byte> bytes = sample_bytes();
  auto a = rt::Program::open_memory(bytes.data(), bytes.size()),
       b = rt::Program::open_memory(bytes.data(), bytes.size());
  rt::State state_a(a), state_b(b);
  rt::Session session_a(a), session_b(b);
  expect_sample(session_a, state_a, 4);
  expect_sample(session_b, state_b, 9);
  EXPECT_THROW(session_a.run(state_b, SampleCall(4).inputs()), rt::Error);
}

TEST(Run, loading_and_unloading_a_thousand_times) {
  TemporaryFile file(".so");
  write_sample(file.path());
  for (int i = 0; i < 1000; ++i) {
    auto program = rt::Program::open(file.path());
    rt::State state(program);
    rt::Session session(program);
    if (i % 100 == 0) expect_sample(session, state, 64);
  }
}

TEST(Run, the_hosts_parallel_for_is_used) {
  std::vector<std::byte> bytes = sample_bytes();
  int calls = 0;
  tenon_options options{.struct_size = sizeof options};
  options.parallel_host = &calls;
  options.parallel_tasks = 3;
  options.parallel_for = [](void* host, int tasks, void (*body)(void*, int), void* context) {
    ++*static_cast<int*>(host);
    EXPECT_LE(tasks, 3);
    std::vector<std::thread> threads;
    for (int i = tasks - 1; i >= 0; --i) threads.emplace_back(body, context, i);
    for (std::thread& thread : threads) thread.join();
  };
  auto program = rt::Program::open_memory(bytes.data(), bytes.size(), &options);
  rt::State state(program);
  rt::Session session(program);
  expect_sample(session, state, 64);
  EXPECT_GT(calls, 0);
}

TEST(Run, the_hosts_allocator_is_used_and_gets_everything_back) {
  static size_t held;
  held = 0;
  tenon_allocator allocator{nullptr,
                            [](void*, size_t size, size_t alignment) {
                              held += size;
                              return std::aligned_alloc(alignment, size);
                            },
                            [](void*, void* memory, size_t size) {
                              held -= size;
                              std::free(memory);
                            }};
  tenon_options options{.struct_size = sizeof options, .allocator = &allocator};
  std::vector<std::byte> bytes = sample_bytes();
  {
    auto program = rt::Program::open_memory(bytes.data(), bytes.size(), &options);
    rt::State state(program);
    rt::Session session(program);
    expect_sample(session, state, 64);
    EXPECT_GT(held, 192u * 4);
  }
  EXPECT_EQ(held, 0u);
}

TEST(Run, a_hosts_flush_to_zero_changes_nothing_and_stays) {
  std::vector<std::byte> bytes = sample_bytes();
  auto program = rt::Program::open_memory(bytes.data(), bytes.size());
  rt::State state(program);
  rt::Session session(program);
  SampleCall call(2);
  for (float& x : call.x) x = 0;
  call.x[0] = 1e-39f;  // a denormal, and the weight of its product
  uint32_t before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before | 0x8040);
  auto results = session.run(state, call.inputs());
  uint32_t after = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before);
  EXPECT_EQ(after & 0x8040, 0x8040u);
  auto expected = session.run(state, call.inputs());
  EXPECT_EQ(std::memcmp(results[0].tensor().data, expected[0].tensor().data, 24), 0);
}

TEST(Run, steps_can_be_observed) {
  std::vector<std::byte> bytes = sample_bytes();
  auto program = rt::Program::open_memory(bytes.data(), bytes.size());
  rt::State state(program);
  rt::Session session(program);
  std::vector<std::pair<std::string, double>> seen;
  tenon_session_observe(
      session.get(),
      [](void* context, const char* name, tenon_step_kind kind, uint64_t, double flops, double) {
        if (kind == TENON_STEP_KERNEL)
          static_cast<std::vector<std::pair<std::string, double>>*>(context)->emplace_back(name, flops);
      },
      &seen);
  expect_sample(session, state, 10);
  ASSERT_GE(seen.size(), 4u);
  EXPECT_EQ(seen[seen.size() - 4], std::pair(std::string("linear+relu"), 10.0 * 4 * 3 * 2));
}

TEST(Run, outputs_are_described_before) {
  std::vector<std::byte> bytes = sample_bytes();
  auto program = rt::Program::open_memory(bytes.data(), bytes.size());
  rt::Session session(program);
  SampleCall call(7);
  auto inputs = call.inputs();
  std::vector<tenon_tensor> outputs(5);
  rt::check(tenon_session_describe_outputs(session.get(), inputs.data(), 2, outputs.data(), 5));
  EXPECT_EQ(outputs[0].sizes[0], 7);
  EXPECT_EQ(outputs[0].strides[0], 3);
  EXPECT_EQ(outputs[1].rank, 0);
  EXPECT_EQ(outputs[3].sizes[0], -1);
  EXPECT_EQ(program.input(0).sizes[0], -1);
  EXPECT_EQ(program.input(0).sizes[1], 4);
  EXPECT_STREQ(program.output(3).name, "positive");
  EXPECT_TRUE(program.output(3).deferred);
  EXPECT_STREQ(tenon_program_metadata(program.get(), "in_spec"), "a tuple");
}

TEST(Run, outputs_go_to_the_callers_allocator) {
  std::vector<std::byte> bytes = sample_bytes();
  auto program = rt::Program::open_memory(bytes.data(), bytes.size());
  rt::State state(program);
  rt::Session session(program);
  alignas(64) static unsigned char room[5][1024];
  tenon_session_set_output_allocator(
      session.get(), [](void*, size_t output, size_t size) -> void* { return size <= 1024 ? room[output] : nullptr; },
      nullptr);
  SampleCall call(5);
  auto inputs = call.inputs();
  std::vector<tenon_tensor> outputs(5);
  session.run(state, inputs, outputs);
  EXPECT_EQ(outputs[3].data, room[3]);
  EXPECT_EQ(outputs[4].data, room[4]);
  EXPECT_EQ(outputs[0].data, room[0]);
  EXPECT_EQ(outputs[3].sizes[0],
            static_cast<int64_t>(expected_sample(sample_weights(), call.x, call.ids).positive.size()));
}

}  // namespace
}  // namespace tenon::package

// One executable, many threads with a session each. Run under the thread sanitizer by make test-long.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <set>
#include <thread>

#include "tenon/pipeline.h"
#include "tests/text_program.h"

namespace tenon {
namespace {

constexpr int thread_count = 16, runs = 20;

void in_threads(const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) threads.emplace_back([&, t] { work(t); });
  for (std::thread& t : threads) t.join();
}

TEST(Threads, SessionsOfOneExecutableGiveTheSameResults) {
  ExportedProgram program = program_of(R"(%p_w: f32[8, 8] = input()
%x: f32[s0, 8] = input()
%m: f32[s0, 8] = aten::mm(%x, %p_w)
%y: f32[s0, 8] = aten::relu(%m)
%s: f32[s0] = aten::sum.dim_IntList(%y, [1])
return %s
)");
  auto executable = prepare(functionalize(program));
  std::unique_ptr<State> state = state_of(program);
  state->set("w", counting({8, 8}));
  std::vector<std::vector<float>> expected;
  Session alone(executable);
  for (int64_t n = 0; n < 4; ++n)
    expected.push_back(values_of(*alone.run(*state, {counting({n + 1, 8})}).outputs[0].get<Tensor>()));
  std::atomic<int> wrong = 0;
  in_threads([&](int t) {
    Session session(executable);
    for (int i = 0; i < runs; ++i) {
      auto n = static_cast<size_t>((t + i) % 4);
      Tensor x = counting({static_cast<int64_t>(n + 1), 8});
      wrong += values_of(*session.run(*state, {x}).outputs[0].get<Tensor>()) != expected[n];
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, NoUpdateOfASharedStateIsLost) {
  ExportedProgram program = program_of(
      "%b_n: f32[] = input()\n%x: f32[] = input()\n"
      "%n: f32[] = aten::add_.Tensor(%b_n, %x)\nreturn %x\n");
  auto executable = prepare(functionalize(program));
  std::unique_ptr<State> state = state_of(program);
  state->set("n", floats({}, {0}));
  in_threads([&](int) {
    Session session(executable);
    for (int i = 0; i < runs; ++i) session.run(*state, {floats({}, {1})});
  });
  EXPECT_EQ(values_of(*state->find("n")), std::vector<float>{thread_count * runs});
}

TEST(Threads, EachRunDrawsNumbersOfItsOwn) {
  ExportedProgram program = program_of("%x: f32[4] = input()\n%r: f32[4] = aten::rand_like(%x)\nreturn %r\n");
  auto executable = prepare(functionalize(program));
  std::unique_ptr<State> state = state_of(program, 3);
  std::vector<std::vector<std::vector<float>>> drawn(thread_count);
  in_threads([&](int t) {
    Session session(executable);
    for (int i = 0; i < runs; ++i)
      drawn[static_cast<size_t>(t)].push_back(
          values_of(*session.run(*state, {counting({4})}).outputs[0].get<Tensor>()));
  });
  std::set<std::vector<float>> all;
  for (const auto& of_thread : drawn) all.insert(of_thread.begin(), of_thread.end());
  EXPECT_EQ(all.size(), static_cast<size_t>(thread_count * runs));
}

TEST(Threads, ProgramsArePreparedAtOnce) {
  std::atomic<int> wrong = 0;
  in_threads([&](int t) {
    std::string ops[] = {"sin", "cos", "exp", "tanh"};
    ExportedProgram program =
        program_of(text("%x: f32[s0] = input()\n%y: f32[s0] = aten::", ops[t % 4], "_(%x)\nreturn %y\n"));
    std::unique_ptr<State> state = state_of(program);
    Session session(prepare(functionalize(program)));
    wrong += session.run(*state, {counting({3})}).outputs[0].get<Tensor>()->sizes() != Sizes{3};
  });
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace tenon

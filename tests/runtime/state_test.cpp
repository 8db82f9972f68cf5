// State: updated in place, read and set by name, saved and restored, damaged and healed.
#include <gtest/gtest.h>

#include <thread>

#include "tenon/base/file.h"
#include "tests/runtime/sample_call.h"

namespace tenon::package {
namespace {

class StateTest : public testing::Test {
 protected:
  std::vector<std::byte> bytes = sample_bytes();
  rt::Program program = rt::Program::open_memory(bytes.data(), bytes.size());
  rt::State state{program};
  rt::Session session{program};

  int64_t runs(const rt::State& of) {
    int64_t value = -1;
    of.get("runs", rt::tensor(&value, {1}));
    return value;
  }
  float running(const rt::State& of) {
    float value = -1;
    of.get("running", rt::tensor(&value, {1}));
    return value;
  }
};

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const rt::Error& error) { return error.what(); }
  return "";
}

TEST_F(StateTest, a_run_updates_it_in_place) {
  SampleCall first = run_sample(session, state, 8), second = run_sample(session, state, 8);
  EXPECT_EQ(runs(state), 2);
  EXPECT_EQ(running(state), static_cast<float>(first.total * 0.5) + second.total);
  EXPECT_EQ(second.drawn, 8 * 3);
  EXPECT_EQ(state.version(), 2u);
}

TEST_F(StateTest, setting_an_entry_reaches_what_was_derived_from_it) {
  expect_sample(session, state, 8);
  SampleWeights changed = sample_weights();
  for (float& w : changed.w) w += 0.25f;
  state.set("w", rt::tensor(changed.w.data(), {4, 3}));
  expect_sample(session, state, 8, changed);
  rt::State other(program);
  expect_sample(session, other, 8);  // the artifact's own weights are as they were
}

TEST_F(StateTest, what_cannot_be_set_is_refused_by_name) {
  float value[12] = {};
  EXPECT_EQ(message_of([&] { state.set("nothing", rt::tensor(value, {1})); }),
            "the program has no state entry 'nothing'");
  EXPECT_EQ(message_of([&] { state.set("frozen.w", rt::tensor(value, {1})); }),
            "'frozen.w' is frozen: the artifact holds only packed forms of it; compile the program with --updatable");
  EXPECT_EQ(message_of([&] {
              state.set("w", rt::tensor(value, {3, 4}));
            }),
            "'w': expected size 4 in dimension 0, got 3");
  EXPECT_EQ(message_of([&] { state.set("w", rt::tensor(value, {12})); }), "'w': expected 2 dimensions, got 1");
  int32_t wrong[12] = {};
  EXPECT_EQ(message_of([&] { state.set("w", rt::tensor(wrong, {4, 3})); }), "'w': expected f32, got i32");
}

TEST_F(StateTest, a_seed_starts_the_random_state_anew) {
  run_sample(session, state, 8);
  state.seed(1234);
  int64_t random[2];
  state.get("rng", rt::tensor(random, {2}));
  EXPECT_EQ(random[0], 1234);
  EXPECT_EQ(random[1], 0);
  EXPECT_EQ(run_sample(session, state, 8).drawn, 0);
}

TEST_F(StateTest, saved_and_loaded) {
  run_sample(session, state, 8);
  TemporaryFile file(".safetensors");
  state.save(file.path());
  run_sample(session, state, 8);
  rt::State other(program);
  other.load(file.path());
  EXPECT_EQ(runs(other), 1);
  state.load(file.path());
  EXPECT_EQ(runs(state), 1);
  EXPECT_EQ(running(state), running(other));
  expect_sample(session, other, 8);
}

TEST_F(StateTest, a_saved_file_is_safetensors) {
  TemporaryFile file(".safetensors");
  state.save(file.path());
  std::string content = read_file(file.path());
  uint64_t length = 0;
  std::memcpy(&length, content.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  std::string header = content.substr(8, length);
  EXPECT_EQ(header.substr(0, header.find("  ")).substr(0, 96),
            "{\"__metadata__\":{\"format\":\"tenon\"},\"w\":{\"dtype\":\"F32\",\"shape\":[4,3],\"data_offsets\":[0,48]}"
            ",\"runn");
  EXPECT_EQ(content.size(), 8 + length + 48 + 4 + 8 + 16);
  EXPECT_EQ(std::memcmp(content.data() + 8 + length, sample_weights().w.data(), 48), 0);
}

TEST_F(StateTest, files_that_do_not_fit_change_nothing) {
  TemporaryFile file(".safetensors");
  state.save(file.path());
  std::string good = read_file(file.path());
  run_sample(session, state, 8);
  auto refusal = [&](const std::string& content) {
    write_file_atomically(file.path(), content);
    std::string message = message_of([&] { state.load(file.path()); });
    EXPECT_EQ(runs(state), 1);
    return message.substr(message.find(": ") + 2);
  };
  auto replaced = [&](const std::string& what, const std::string& by) {
    std::string content = good;
    return content.replace(content.find(what), what.size(), by);
  };
  EXPECT_EQ(refusal(replaced("\"runs\"", "\"cuns\"")),
            "it holds 'cuns', which this program has not: it is the state of another");
  EXPECT_EQ(refusal(replaced("\"I64\"", "\"U64\"")), "'runs': expected I64, got U64");
  EXPECT_EQ(refusal(replaced("[4,3]", "[3,4]")), "'w': its shape is not the one this program has");
  EXPECT_EQ(refusal(replaced("[0,48]", "[0,49]")), "'w': its bytes do not lie in the file; it may be truncated");
  EXPECT_EQ(refusal(good.substr(0, good.size() - 1)), "'rng': its bytes do not lie in the file; it may be truncated");
  EXPECT_EQ(refusal(replaced("{\"__m", "x\"__m")), "its header is not the JSON that safetensors files have");
  EXPECT_EQ(refusal("abc"), "the file is truncated: 8 bytes are expected at 0, it ends at 3");
  for (size_t size = 0; size < good.size(); ++size) EXPECT_NE(refusal(good.substr(0, size)), "") << size;
  for (size_t i = 0; i < 300; ++i) {  // whatever stands in the header, the reader stays inside it
    std::string content = good;
    content[i % (good.size() - 80)] ^= static_cast<char>(1 << i % 7);
    write_file_atomically(file.path(), content);
    (void)message_of([&] { rt::State(program).load(file.path()); });
  }
}

TEST_F(StateTest, reset_and_assign) {
  run_sample(session, state, 8);
  rt::State copy(program);
  copy.assign(state);
  EXPECT_EQ(runs(copy), 1);
  run_sample(session, copy, 8);
  EXPECT_EQ(runs(state), 1);
  state.reset();
  EXPECT_EQ(runs(state), 0);
  EXPECT_EQ(running(state), 0);
  expect_sample(session, state, 8);
}

TEST_F(StateTest, a_state_of_another_program_is_refused) {
  auto other = rt::Program::open_memory(bytes.data(), bytes.size());
  rt::State foreign(other);
  EXPECT_EQ(message_of([&] { state.assign(foreign); }), "tenon_state_assign: the states belong to different programs");
  EXPECT_EQ(message_of([&] { session.run(foreign, SampleCall(2).inputs()); }),
            "tenon_session_run: the state belongs to another program");
}

TEST(StateCheck, a_check_before_the_first_write_leaves_it_as_it_was) {
  std::vector<std::byte> bytes = sample_bytes({.limit = 10});
  auto program = rt::Program::open_memory(bytes.data(), bytes.size());
  rt::State state(program);
  rt::Session session(program);
  EXPECT_EQ(message_of([&] { session.run(state, SampleCall(11).inputs()); }),
            "the batch is 11, but at most 10 are wanted");
  expect_sample(session, state, 10);
}

TEST(StateCheck, a_check_after_a_write_damages_it) {
  std::vector<std::byte> bytes = sample_bytes({.limit = 10, .check_after_write = true});
  auto program = rt::Program::open_memory(bytes.data(), bytes.size());
  rt::State state(program), saved(program);
  rt::Session session(program);
  expect_sample(session, state, 10);
  saved.assign(state);
  EXPECT_EQ(message_of([&] { session.run(state, SampleCall(11).inputs()); }),
            "the batch is 11, but at most 10 are wanted");
  std::string damaged = message_of([&] { session.run(state, SampleCall(2).inputs()); });
  EXPECT_NE(damaged.find("the state is damaged"), damaged.npos);
  float value = 0;
  EXPECT_THROW(state.get("running", rt::tensor(&value, {1})), rt::Error);
  TemporaryFile file(".safetensors");
  EXPECT_THROW(state.save(file.path()), rt::Error);
  EXPECT_THROW(saved.assign(state), rt::Error);
  state.assign(saved);
  expect_sample(session, state, 10);
}

TEST_F(StateTest, setting_while_others_run) {
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      rt::Session own(program);
      while (!stop) run_sample(own, state, 16);
    });
  SampleWeights weights = sample_weights();
  for (int i = 0; i < 200; ++i) state.set("w", rt::tensor(weights.w.data(), {4, 3}));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  expect_sample(session, state, 16);
}

}  // namespace
}  // namespace tenon::package

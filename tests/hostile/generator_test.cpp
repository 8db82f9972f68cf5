// Programs of the generator and real ones, mutated, go the whole way: whatever they say, they end in results or in an
// Error.
#include "tests/hostile/generator.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "tenon/base/file.h"
#include "tests/hostile/inputs.h"
#include "tests/hostile/whole_way.h"

namespace tenon {
namespace {

std::vector<std::byte> random_bytes(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> out(count);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

TEST(Generator, most_programs_are_read_and_many_run) {
  constexpr size_t programs = 300;
  size_t read = 0, checked = 0, joint = 0, lowered = 0, ran = 0;
  for (size_t seed = 0; seed < programs; ++seed) {
    std::vector<std::byte> bytes = random_bytes(seed, 200);
    Choices choices(bytes);
    std::string json = generated_program(choices);
    SCOPED_TRACE(json);
    try {
      Journey journey = go_the_whole_way(json);
      read += journey.read;
      checked += journey.checked;
      joint += journey.joint;
      lowered += journey.lowered;
      ran += journey.ran;
    } catch (const std::exception& error) { ADD_FAILURE() << "seed " << seed << ": " << error.what(); }
  }
  EXPECT_GT(read, programs / 2);
  EXPECT_GT(checked, programs / 3);
  EXPECT_GT(ran, programs / 10);
  RecordProperty("read", static_cast<int>(read));
  printf("read %zu checked %zu joint %zu lowered %zu ran %zu\n", read, checked, joint, lowered, ran);
}

TEST(Generator, mutated_programs_end_in_errors_alone) {
  for (size_t seed = 0; seed < 300; ++seed) {
    std::vector<std::byte> bytes = random_bytes(1'000'000 + seed, 300);
    Choices choices(bytes);
    std::string json = mutated_json(generated_program(choices), choices);
    SCOPED_TRACE(json);
    try {
      go_the_whole_way(json);
    } catch (const std::exception& error) { ADD_FAILURE() << "seed " << seed << ": " << error.what(); }
  }
}

TEST(Found, what_failed_once_goes_every_way) {
  for (const auto& entry : std::filesystem::directory_iterator(TENON_FUZZ_FOLDER "/found/programs")) {
    SCOPED_TRACE(entry.path());
    try {
      go_the_whole_way(read_file(entry.path()), Ways::all);
    } catch (const std::exception& error) { ADD_FAILURE() << error.what(); }
  }
}

}  // namespace
}  // namespace tenon

#include "tests/hostile/inputs.h"

#include <algorithm>
#include <filesystem>

#include "tenon/base/file.h"
#include "tests/hostile/generator.h"

namespace tenon {
namespace {

const std::vector<std::string>& seeds() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> paths, out;
    for (const auto& entry : std::filesystem::directory_iterator(TENON_FUZZ_FOLDER "/seeds/program"))
      paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) out.push_back(read_file(path));
    return out;
  }();
  return all;
}

}  // namespace

std::string generated_input(std::span<const std::byte> bytes) {
  Choices choices(bytes);
  uint8_t kind = choices.byte();
  bool mutated = kind % 4 == 0, stateful = kind / 4 % 2 == 1;
  std::string json = generated_program(choices, stateful);
  return mutated ? mutated_json(json, choices) : json;
}

std::string mutated_input(std::span<const std::byte> bytes) {
  Choices choices(bytes);
  return mutated_json(choices.of(std::span<const std::string>(seeds())), choices);
}

}  // namespace tenon

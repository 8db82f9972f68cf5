// The JSON of real programs, changed as a tree by what the bytes say, taken the whole way.
#include <algorithm>
#include <filesystem>
#include <new>
#include <vector>

#include "tenon/base/file.h"
#include "tests/fuzz/fuzz.h"
#include "tests/hostile/generator.h"
#include "tests/hostile/whole_way.h"
#include "tools/tenon/memory.h"

namespace tenon {
namespace {
const std::vector<std::string>& seeds() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> paths, out;
    for (const auto& entry : std::filesystem::directory_iterator(TENON_FUZZ_SEEDS "/program"))
      paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) out.push_back(read_file(path));
    return out;
  }();
  return all;
}
}  // namespace

void fuzz(FuzzBytes bytes) {
  Choices choices(bytes);
  std::string json = mutated_json(choices.of(std::span<const std::string>(seeds())), choices);
  tool::limit_memory(int64_t{512} << 20);
  try {
    go_the_whole_way(json);
  } catch (const std::bad_alloc&) {}
}
}  // namespace tenon

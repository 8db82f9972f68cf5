#include "tenon/export/serde/load.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tenon/export/serde/save.h"
#include "tests/export/test_ops.h"

namespace tenon {
namespace {

std::vector<std::string> program_files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data_path("pt2")))
    if (entry.path().extension() == ".pt2") out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Load, reads_every_small_program_of_three_releases) {
  auto files = program_files();
  ASSERT_GT(files.size(), 30u);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    ExportedProgram program;
    ASSERT_NO_THROW(program = load_exported(file, test_ops()));
    program.check_payloads();
    EXPECT_EQ(program.schema_major, 8);
    auto samples = program.samples();
    ASSERT_TRUE(samples);
    EXPECT_EQ(samples->leaves.size(), program.in_tree().leaves());
  }
}

}  // namespace
}  // namespace tenon

#include "tenon/export/serde/load.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tenon/base/file.h"
#include "tests/export/edited.h"
#include "tests/export/test_ops.h"

namespace tenon {
namespace {

std::vector<std::string> program_files() {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(data_path("pt2")))
    if (entry.path().extension() == ".pt2" && entry.path().parent_path().filename() != "special")
      out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

TEST(Load, reads_every_small_program_of_every_release) {
  auto files = program_files();
  ASSERT_GT(files.size(), 400u);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    ExportedProgram program;
    ASSERT_NO_THROW(program = load_exported(file, test_ops()));
    program.check_payloads();
    auto samples = program.samples();
    ASSERT_TRUE(samples);
    EXPECT_EQ(samples->leaves.size(), program.in_tree().leaves());
  }
}

TEST(Load, any_flipped_byte_gives_a_program_or_an_error) {
  std::string good = read_file(data_path("pt2/torch-2.15/j_constants.pt2"));
  std::string path = scratch_path("flipped.pt2");
  size_t refused = 0;
  for (size_t at = 0; at < good.size(); at += 29) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    write_file_atomically(path, bad);
    try {
      ExportedProgram program = load_exported(path, test_ops());
      program.check_payloads();
      program.samples();
    } catch (const Error&) { ++refused; }
  }
  EXPECT_GT(refused, good.size() / 116);
}

}  // namespace
}  // namespace tenon

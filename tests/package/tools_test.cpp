// Tools that people use on shared objects read ours without complaint and name its functions. Tools that are not
// installed are left out, and the test says so.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tests/package/sample.h"

namespace tenon::package {
namespace {

bool installed(const std::string& tool) {
  return std::system(("command -v " + tool + " >/dev/null 2>&1").c_str()) == 0;
}

std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  while (size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, got);
  ::pclose(pipe);
  return out;
}

class Tools : public testing::Test {
 protected:
  void SetUp() override { write_sample(file.path()); }
  TemporaryFile file{".so"};
};

TEST_F(Tools, readelf_finds_nothing_wrong) {
  if (!installed("readelf")) GTEST_SKIP() << "readelf is not installed";
  std::string text = output_of("readelf -aW " + file.path());
  EXPECT_EQ(text.find("Warning"), text.npos) << text;
  EXPECT_EQ(text.find("Error"), text.npos) << text;
  EXPECT_EQ(text.find("<corrupt"), text.npos) << text;
  for (const char* part : {"linear.v3", "linear.v4", "Library soname: [sample.so]", "IBT, SHSTK", "Build ID",
                           "GNU_RELRO", ".tenon.weights", "There are no relocations"})
    EXPECT_NE(text.find(part), text.npos) << part << "\n" << text;
  for (const char* part : {"NEEDED", "INIT", "RWE", "TEXTREL"}) EXPECT_EQ(text.find(part), text.npos) << part;
}

TEST_F(Tools, readelf_understands_the_unwind_tables) {
  if (!installed("readelf")) GTEST_SKIP() << "readelf is not installed";
  std::string text = output_of("readelf -W --debug-dump=frames-interp " + file.path());
  EXPECT_EQ(text.find("Warning"), text.npos) << text;
  EXPECT_NE(text.find("rbp+16"), text.npos) << text;
}

TEST_F(Tools, objdump_names_functions) {
  if (!installed("objdump")) GTEST_SKIP() << "objdump is not installed";
  std::string text = output_of("objdump -d " + file.path());
  EXPECT_NE(text.find("<partial_sums.v3>:"), text.npos);
  EXPECT_NE(text.find("endbr64"), text.npos);
}

TEST_F(Tools, gdb_names_functions) {
  if (!installed("gdb")) GTEST_SKIP() << "gdb is not installed";
  std::string text = output_of("gdb -nx -batch -ex 'info functions' -ex 'disassemble merge.v3' " + file.path());
  EXPECT_NE(text.find("transpose.v4"), text.npos) << text;
}

TEST_F(Tools, strip_leaves_a_loadable_artifact) {
  if (!installed("strip")) GTEST_SKIP() << "strip is not installed";
  TemporaryFile stripped(".so");
  output_of("strip -o " + stripped.path() + " " + file.path());
  EXPECT_EQ(output_of("readelf -SW " + stripped.path()).find("Warning"), std::string::npos);
}

}  // namespace
}  // namespace tenon::package

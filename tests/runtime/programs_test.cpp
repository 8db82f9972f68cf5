// Whole programs around the runtime: plain C, static, musl, under valgrind, the thread sanitizer and gdb. What is not
// installed is left out, and the test says so.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/package/sample.h"

namespace tenon::package {
namespace {

const std::string binaries = TENON_BINARIES, libraries = TENON_LIBRARIES;

struct Outcome {
  int status;
  std::string text;
};
Outcome run(const std::string& command) {
  Outcome out{};
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  char buffer[4096];
  while (size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) out.text.append(buffer, got);
  int status = ::pclose(pipe);
  out.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return out;
}
bool installed(const std::string& tool) { return run("command -v " + tool).status == 0; }
bool built(const std::string& name) { return std::filesystem::exists(binaries + "/" + name); }

class Programs : public testing::Test {
 protected:
  void SetUp() override { write_sample(file.path()); }
  void expect_ok(const std::string& command) {
    Outcome outcome = run(command);
    EXPECT_EQ(outcome.status, 0) << command << "\n" << outcome.text;
    EXPECT_NE(outcome.text.find("ok\n"), outcome.text.npos) << outcome.text;
  }
  TemporaryFile file{".so"};
};

TEST_F(Programs, plain_c_against_the_shared_library) {
  expect_ok(binaries + "/plain_shared " + file.path() + " 16 100 50");
}

TEST_F(Programs, plain_c_with_a_bit_of_the_code_changed) {
  expect_ok(binaries + "/plain_shared " + file.path() + " damaged");
  expect_ok(binaries + "/plain_static " + file.path() + " damaged");
}

TEST_F(Programs, a_static_executable) { expect_ok(binaries + "/plain_static " + file.path() + " 4 50 10"); }

TEST_F(Programs, musl) {
  if (!built("plain_musl")) GTEST_SKIP() << "musl-gcc is not installed, or this is a build with sanitizers";
  expect_ok(binaries + "/plain_musl " + file.path() + " 4 50 10");
}

TEST_F(Programs, the_dynamic_linker_of_musl_opens_an_artifact) {
  if (!built("dlopen_musl")) GTEST_SKIP() << "musl-gcc is not installed, or this is a build with sanitizers";
  Outcome outcome = run(binaries + "/dlopen_musl " + file.path() + " tenon_tables");
  EXPECT_EQ(outcome.status, 0) << outcome.text;
}

TEST_F(Programs, the_thread_sanitizer_finds_no_race_between_callers) {
  if (!built("plain_tsan")) GTEST_SKIP() << "a build with other sanitizers";
  expect_ok(binaries + "/plain_tsan " + file.path() + " 16 60 20");
}

TEST_F(Programs, the_thread_sanitizer_finds_no_race_in_the_pool) {
  if (!built("pool_tsan")) GTEST_SKIP() << "a build with other sanitizers";
  expect_ok(binaries + "/pool_tsan");
}

TEST_F(Programs, valgrind_finds_no_error_and_no_leak) {
  if (!installed("valgrind")) GTEST_SKIP() << "valgrind is not installed";
  if (!built("plain_tsan")) GTEST_SKIP() << "a build with other sanitizers";
  // Its processor has no AVX-512; v3 code runs.
  expect_ok("valgrind -q --leak-check=full --show-leak-kinds=all --errors-for-leak-kinds=all --error-exitcode=9 " +
            binaries + "/plain_shared " + file.path() + " 3 5 5");
}

TEST_F(Programs, gdb_names_a_kernel_that_is_running) {
  if (!installed("gdb")) GTEST_SKIP() << "gdb is not installed";
  Outcome outcome =
      run("gdb -nx -batch -ex 'set breakpoint pending on' -ex 'set debuginfod enabled off' -ex 'break "
          "__jit_debug_register_code' "
          "-ex run -ex finish -ex 'rbreak ^merge' -ex 'delete 1' -ex continue -ex backtrace -ex kill --args " +
          binaries + "/plain_shared " + file.path());
  if (outcome.text.find("ptrace") != outcome.text.npos) GTEST_SKIP() << "tracing is not permitted here";
  EXPECT_NE(outcome.text.find("in merge.v"), outcome.text.npos) << outcome.text;
  EXPECT_NE(outcome.text.find("tenon_session_run"), outcome.text.npos) << outcome.text;
}

TEST_F(Programs, perf_names_kernels) {
  if (!installed("perf")) GTEST_SKIP() << "perf is not installed";
  TemporaryFile data(".data");
  Outcome recorded =
      run("perf record -o " + data.path() + " -e cpu-clock " + binaries + "/plain_shared " + file.path() + " 1 30000");
  if (recorded.status != 0) GTEST_SKIP() << "perf may not record here: " << recorded.text;
  std::string text = run("perf report -i " + data.path() + " --stdio").text;
  EXPECT_NE(text.find("linear.v"), text.npos) << text;
}

TEST_F(Programs, valgrind_names_kernels) {
  if (!installed("callgrind_annotate")) GTEST_SKIP() << "valgrind is not installed";
  if (!built("plain_tsan")) GTEST_SKIP() << "a build with other sanitizers";
  TemporaryFile data(".callgrind");
  run("valgrind --tool=callgrind --callgrind-out-file=" + data.path() + " " + binaries + "/plain_shared " +
      file.path() + " 1 2 1");
  std::string text = run("callgrind_annotate --threshold=100 " + data.path()).text;
  EXPECT_NE(text.find("linear.v3"), text.npos) << text;
}

// As a user would: the installed headers and library, found by pkg-config and by find_package.
TEST_F(Programs, installed_it_serves_c_and_cpp) {
  if (!built("plain_tsan")) GTEST_SKIP() << "a build with sanitizers";
  TemporaryFile folder(".installed");
  const std::string prefix = folder.path() + "/prefix", source = TENON_SOURCE;
  Outcome outcome = run("cmake --install " + binaries + "/.. --component runtime --prefix " + prefix);
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  if (installed("pkg-config")) {
    outcome = run("export PKG_CONFIG_PATH=$(find " + prefix +
                  " -name pkgconfig) && cc -std=c11 -Wall -Wextra -Wpedantic -Werror " + source +
                  "/tests/runtime/plain.c $(pkg-config --cflags --libs tenon_runtime) -pthread -o " + prefix +
                  "/plain && LD_LIBRARY_PATH=" + prefix + "/lib " + prefix + "/plain " + file.path());
    EXPECT_EQ(outcome.status, 0) << outcome.text;
  }
  outcome =
      run("cmake -S " + source + "/tests/runtime/installed -B " + prefix + "/build -DCMAKE_PREFIX_PATH=" + prefix +
          " && cmake --build " + prefix + "/build && " + prefix + "/build/user " + file.path());
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("ok\n"), outcome.text.npos) << outcome.text;
  std::filesystem::remove_all(folder.path());
}

TEST_F(Programs, the_shared_library_is_small_and_needs_libc_alone) {
  if (!built("plain_tsan")) GTEST_SKIP() << "a build with sanitizers";
  TemporaryFile stripped(".so");
  ASSERT_EQ(run("strip -o " + stripped.path() + " " + libraries + "/libtenon_runtime.so").status, 0);
  EXPECT_LE(std::filesystem::file_size(stripped.path()), 100u * 1024);
  std::string needed = run("readelf -dW " + stripped.path() + " | grep NEEDED | grep -v 'ld-linux'").text;
  EXPECT_NE(needed.find("libc.so.6"), needed.npos) << needed;
  EXPECT_EQ(std::count(needed.begin(), needed.end(), '\n'), 1) << needed;
  std::string symbols = run("nm -D --defined-only " + stripped.path()).text;
  EXPECT_EQ(symbols.find(" tn_"), symbols.npos) << symbols;
}

}  // namespace
}  // namespace tenon::package

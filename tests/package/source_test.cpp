// An artifact that a C compiler and a linker make from emitted source is one like those we write.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/include/tenon/runtime.hpp"
#include "runtime/verify.h"
#include "tenon/base/file.h"
#include "tenon/base/text.h"
#include "tenon/package/artifact.h"
#include "tenon/package/tables_source.h"
#include "tests/package/sample.h"

namespace tenon::package {
namespace {

class Source : public testing::TestWithParam<const char*> {};

TEST_P(Source, becomes_an_artifact) {
  std::string linker = GetParam();
  if (std::system(("command -v " + linker + " >/dev/null").c_str()) != 0) GTEST_SKIP() << linker << " is not installed";
  std::string kind = linker.substr(linker.rfind('.') + 1);  // ld.lld is -fuse-ld=lld
  TemporaryFile tables(".c"), weights(".bin"), made(".so"), log(".log");
  std::vector<std::byte> bytes(sample_parts().tables.weights_size());
  fill_sample(bytes);
  write_file_atomically(weights.path(), std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  write_file_atomically(tables.path(), tables_source(sample_parts().tables, weights.path()));
  std::string command = text("cc -O2 -ffreestanding -fPIC -fvisibility=hidden -ffp-contract=off -fuse-ld=", kind, " -I",
                             TENON_SOURCE, " ", artifact_link_flags, " -o ", made.path(), " ", tables.path(), " ",
                             TENON_SOURCE, "/tests/package/sample_kernels.c >", log.path(), " 2>&1");
  ASSERT_EQ(std::system(command.c_str()), 0) << command << "\n" << read_file(log.path());

  EXPECT_EQ(Artifact::open(made.path()).target_names(), std::vector<std::string>{"portable"});
  auto program = runtime::Program::open(made.path());
  runtime::State state(program);
  runtime::Session session(program);
  std::vector<float> x = {1, 2, 3, 4, -1, 0.5, 2, 0};
  std::vector<int64_t> ids = {4, 0};
  auto results = session.run(state, {runtime::tensor(x.data(), {2, 4}), runtime::tensor(ids.data(), {2})});
  SampleResult expected = expected_sample(sample_weights(), x, ids);
  EXPECT_EQ(std::vector<float>(results[0].data<float>(), results[0].data<float>() + 6), expected.y);
  EXPECT_EQ(results[3].elements(), expected.positive.size());
}

TEST(SourceForAArch64, becomes_an_artifact_that_runs_there) {
  for (const char* tool : {"aarch64-linux-gnu-gcc", "qemu-aarch64"})
    if (std::system(text("command -v ", tool, " >/dev/null").c_str()) != 0) GTEST_SKIP() << tool << " is not installed";
  TemporaryFile tables(".c"), weights(".bin"), made(".so"), plain(".exe"), log(".log");
  std::vector<std::byte> bytes(sample_parts().tables.weights_size());
  fill_sample(bytes);
  write_file_atomically(weights.path(), std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  write_file_atomically(tables.path(), tables_source(sample_parts().tables, weights.path()));
  auto succeeds = [&](const std::string& command) {
    EXPECT_EQ(std::system(text("(", command, ") >", log.path(), " 2>&1").c_str()), 0) << command << "\n"
                                                                                      << read_file(log.path());
  };
  std::string root = TENON_SOURCE;
  succeeds(text("aarch64-linux-gnu-gcc -O2 -ffreestanding -fPIC -fvisibility=hidden -ffp-contract=off -I", root, " ",
                artifact_link_flags, " -o ", made.path(), " ", tables.path(), " ", root,
                "/tests/package/sample_kernels.c"));
  succeeds(text("aarch64-linux-gnu-gcc -std=gnu11 -O1 -D_GNU_SOURCE -I", root, "/runtime/include -static -pthread -o ",
                plain.path(), " ", root, "/tests/runtime/plain.c ", root, "/runtime/*.c"));
  succeeds(text("qemu-aarch64 ", plain.path(), " ", made.path(), " 4 20 3"));
  tenon_program* program = nullptr;
  EXPECT_EQ(tenon_program_open(made.path().c_str(), nullptr, &program), TENON_UNSUPPORTED);
  EXPECT_NE(std::string(tenon_last_error()).find("is for AArch64 processors, this is x86-64"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(, Source, testing::Values("ld.bfd", "ld.gold", "ld.lld", "mold"), [](const auto& info) {
  std::string name = info.param;
  return name.substr(name.rfind('.') + 1);
});

}  // namespace
}  // namespace tenon::package

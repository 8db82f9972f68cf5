// What is written can be read, is the same each time, and is accepted by the system's dynamic linker.
#include "tenon/package/artifact.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "runtime/verify.h"
#include "tenon/base/error.h"
#include "tenon/base/file.h"
#include "tests/package/sample.h"

namespace tenon::package {
namespace {

TEST(Artifact, what_is_written_can_be_read) {
  TemporaryFile file(".so");
  write_sample(file.path());
  Artifact artifact = Artifact::open(file.path());
  EXPECT_EQ(artifact.producer(), "tenon tests");
  EXPECT_EQ(artifact.metadata("in_spec"), "a tuple");
  EXPECT_EQ(artifact.target_names(), (std::vector<std::string>{"x86-64-v3", "x86-64-v4"}));
  EXPECT_EQ(artifact.tables().header->inputs.count, 2u);
  EXPECT_EQ(artifact.tables().header->outputs.count, 5u);
  EXPECT_EQ(artifact.build_id().size(), 32u);
  ASSERT_EQ(artifact.weights().size(), 192u);
  EXPECT_EQ(std::memcmp(artifact.weights().data(), sample_weights().w.data(), sizeof(SampleWeights::w)), 0);
  artifact.verify_checksums();
}

TEST(Artifact, its_text_names_inputs_state_and_steps) {
  std::vector<std::byte> bytes = sample_bytes();
  std::string text = to_text(Artifact::parse(bytes, "sample"));
  EXPECT_NE(text.find("input 'x': f32[s0, 4]"), text.npos) << text;
  EXPECT_NE(text.find("parameter 'w': f32[4, 3]"), text.npos) << text;
  EXPECT_NE(text.find("parameter 'frozen.w': frozen"), text.npos) << text;
  EXPECT_NE(text.find("symbol s0 in [1, 64]"), text.npos) << text;
  EXPECT_NE(text.find("kernel 5, call 2,"), text.npos) << text;
  EXPECT_NE(text.find("weights 192 bytes"), text.npos) << text;
}

TEST(Artifact, writing_twice_gives_the_same_bytes) {
  TemporaryFile file(".so");
  write_sample(file.path());
  std::string once = read_file(file.path());
  write_sample(file.path());
  EXPECT_EQ(read_file(file.path()), once);
  std::vector<std::byte> memory = sample_bytes();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(memory.data()), memory.size()), once);
}

TEST(Artifact, weights_change_the_build_id) {
  std::vector<std::byte> other = artifact_bytes(sample_parts(), [](std::span<std::byte> weights) {
    fill_sample(weights);
    weights[0] ^= std::byte{1};
  });
  std::vector<std::byte> same = sample_bytes();
  EXPECT_NE(Artifact::parse(other, "a").build_id(), Artifact::parse(same, "b").build_id());
}

TEST(Artifact, without_commit_there_is_no_file) {
  TemporaryFile file(".so");
  {
    ArtifactWriter writer(file.path(), sample_parts());
    fill_sample(writer.weights());
  }
  EXPECT_FALSE(std::filesystem::exists(file.path()));
}

TEST(Artifact, a_program_without_weights_and_code_can_be_written) {
  Tables tables("tenon tests");
  Id in = tables.input({.name = "in", .sizes = {2}}), out = tables.output({.name = "out", .sizes = {2}});
  tables.copy(Tables::main, in, out);
  std::vector<std::byte> bytes = artifact_bytes({.tables = tables}, {});
  Artifact artifact = Artifact::parse(bytes, "copy");
  EXPECT_EQ(artifact.weights().size(), 0u);
  EXPECT_EQ(artifact.target_names(), std::vector<std::string>{"portable"});
  artifact.verify_checksums();
}

TEST(Artifact, a_function_without_code_is_our_mistake) {
  ArtifactParts parts = sample_parts();
  parts.tables.function("nowhere");
  EXPECT_THROW(artifact_bytes(parts, {}), InternalError);
}

TEST(Artifact, the_dynamic_linker_accepts_it) {
  TemporaryFile file(".so");
  write_sample(file.path());
  void* handle = ::dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(handle, nullptr) << ::dlerror();
  auto header = static_cast<const tenon_header*>(::dlsym(handle, TENON_SYMBOL_TABLES));
  ASSERT_NE(header, nullptr) << ::dlerror();
  EXPECT_EQ(std::memcmp(header->magic, TENON_MAGIC, 8), 0);
  EXPECT_EQ(::dlsym(handle, "linear"), nullptr);
  // A function reached through the tables, as the loader does it.
  tn_tables tables;
  ASSERT_EQ(tn_tables_verify(header, header->size, &tables), TENON_OK) << tenon_last_error();
  for (uint64_t f = 0; f < header->functions.count; ++f) {
    if (std::string_view(tables.strings + tables.functions[f].name) != "merge") continue;
    auto merge =
        reinterpret_cast<tenon_kernel>(reinterpret_cast<uintptr_t>(header) +
                                       static_cast<uintptr_t>(tables.functions[f].entry[TENON_TARGET_X86_64_V3]));
    float in[3] = {1, 2, 4}, out = 0;
    void* buffers[2] = {in, &out};
    int64_t count = 3;
    tenon_args args{buffers, &count, nullptr, nullptr};
    EXPECT_EQ(merge(&args, 0, 1), 0);
    EXPECT_EQ(out, 7);
  }
  EXPECT_EQ(::dlclose(handle), 0);
}

TEST(Artifact, the_sample_is_small) { EXPECT_LT(sample_bytes().size(), 32768u); }

}  // namespace
}  // namespace tenon::package

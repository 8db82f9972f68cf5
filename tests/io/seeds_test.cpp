// The readers and writers over files that PyTorch and NumPy wrote: the seeds of the fuzz targets.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "tenon/base/file.h"
#include "tenon/io/json.h"
#include "tenon/io/npy.h"
#include "tenon/io/pickle.h"
#include "tenon/io/zip.h"
#include "tests/io/message.h"
#include "tests/io/rewrite_json.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

const fs::path folder = fs::path(TENON_TEST_DATA).parent_path() / "fuzz" / "seeds";

struct Seed {
  std::string name, bytes;
};
std::vector<Seed> seeds(const std::string& target) {
  std::vector<Seed> all;
  for (const auto& entry : fs::directory_iterator(folder / target))
    all.push_back({entry.path().filename().string(), read_file(entry.path().string())});
  EXPECT_FALSE(all.empty());
  return all;
}
std::span<const std::byte> as_bytes(std::string_view s) { return std::as_bytes(std::span(s)); }

void read_zip(std::string_view bytes) {
  ZipArchive archive(as_bytes(bytes), "seed");
  for (const ZipEntry& entry : archive.entries()) archive.bytes(entry);
}
void read_json(std::string_view bytes) { JsonDocument(bytes, "seed"); }
void read_pickle(std::string_view bytes) { PickleDocument(as_bytes(bytes), "seed"); }
void read_arrays(std::string_view bytes) {
  if (looks_like_zip(as_bytes(bytes))) read_npz(as_bytes(bytes), "seed");
  else read_npy(as_bytes(bytes), "seed");
}

const std::pair<const char*, void (*)(std::string_view)> readers[] = {
    {"zip", read_zip}, {"json", read_json}, {"pickle", read_pickle}, {"npy", read_arrays}};

TEST(Seeds, AreRead) {
  for (auto [target, read] : readers)
    for (const Seed& seed : seeds(target))
      EXPECT_EQ(message_of([&, read = read] { read(seed.bytes); }), "") << seed.name;
}

TEST(Seeds, WithAnyByteChangedGiveAnErrorOrAValue) {
  for (auto [target, read] : readers)
    for (Seed& seed : seeds(target))
      for (char& byte : seed.bytes) {
        byte = static_cast<char>(byte ^ 0x81);
        message_of([&, read = read] { read(seed.bytes); });
        byte = static_cast<char>(byte ^ 0x81);
      }
}

TEST(Seeds, ArchivesOfPyTorchAreRewrittenByteForByte) {
  std::string path = text(testing::TempDir(), "tenon_seed_", ::getpid());
  for (const Seed& seed : seeds("zip")) {
    if (!ends_with(seed.name, ".pt") && !ends_with(seed.name, ".pt2")) continue;
    ZipArchive archive(as_bytes(seed.bytes), seed.name);
    ZipWriter writer(path);
    for (const ZipEntry& entry : archive.entries()) writer.add(entry.name, archive.bytes(entry));
    writer.commit();
    EXPECT_TRUE(read_file(path) == seed.bytes) << seed.name;
  }
  fs::remove(path);
}

TEST(Seeds, JsonOfPyTorchIsRewrittenByteForByte) {
  for (const Seed& seed : seeds("json")) {
    if (seed.name == "kinds.json") continue;  // holds an integer beyond 64 bits, which is read as a float
    EXPECT_EQ(rewritten(seed.bytes, seed.name), seed.bytes) << seed.name;
  }
}

TEST(Seeds, ArraysOfNumPyAreRewrittenByteForByte) {
  for (const Seed& seed : seeds("npy")) {
    if (!ends_with(seed.name, ".npy") || seed.bytes.find("'>") != std::string::npos) continue;
    EXPECT_TRUE(npy_bytes(read_npy(as_bytes(seed.bytes), seed.name)) == seed.bytes) << seed.name;
  }
}

TEST(Seeds, DeflatedArraysAreRead) {
  std::vector<NamedArray> arrays = load_arrays((folder / "npy" / "deflated.npz").string());
  ASSERT_EQ(arrays.size(), 1u);
  EXPECT_EQ(arrays[0].name, "a");
  ASSERT_EQ(arrays[0].array.bytes.size(), 30u * 8u);
  EXPECT_EQ(reinterpret_cast<const int64_t*>(arrays[0].array.bytes.data())[29], 29);
}

}  // namespace
}  // namespace tenon

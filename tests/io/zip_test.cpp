#include "tenon/io/zip.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>

#include "tenon/io/crc32.h"
#include "tests/io/message.h"

namespace tenon {
namespace {

std::span<const std::byte> as_bytes(std::string_view s) { return std::as_bytes(std::span(s)); }
std::string as_string(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string scratch(const std::string& name) { return text(testing::TempDir(), "tenon_zip_", ::getpid(), "_", name); }

using Files = std::vector<std::pair<std::string, std::string>>;

std::string written(const Files& files, ZipStyle style = ZipStyle::pytorch) {
  std::string path = scratch("written");
  ZipWriter writer(path, style);
  for (const auto& [name, content] : files) writer.add(name, content);
  writer.commit();
  std::string bytes = read_file(path);
  std::filesystem::remove(path);
  return bytes;
}

void put(std::string& out, uint64_t value, int size) {
  for (int i = 0; i < size; ++i) out += static_cast<char>(value >> (8 * i));
}

std::string deflated(const std::string& content) {
  std::string out(content.size() + 100, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// An archive of one entry, of which tests spoil a field.
struct OneEntry {
  std::string name = "a/b", local_name = name, packed = "hello";
  uint64_t size = 5, local_size = 5, crc = crc32(as_bytes("hello")), method = 0, local_method = 0, flags = 0,
           local_flags = 0;
  uint64_t header = 0, count = 1, disk = 0;
  std::string make() const {
    std::string out;
    put(out, 0x04034b50, 4);
    for (uint64_t v : {uint64_t{20}, local_flags, local_method, uint64_t{0}, uint64_t{0}}) put(out, v, 2);
    put(out, crc, 4), put(out, packed.size(), 4), put(out, local_size, 4);
    put(out, local_name.size(), 2), put(out, 0, 2);
    out += local_name + packed;
    size_t start = out.size();
    put(out, 0x02014b50, 4);
    for (uint64_t v : {uint64_t{20}, uint64_t{20}, flags, method, uint64_t{0}, uint64_t{0}}) put(out, v, 2);
    put(out, crc, 4), put(out, packed.size(), 4), put(out, size, 4);
    put(out, name.size(), 2), put(out, 0, 2), put(out, 0, 2), put(out, disk, 2), put(out, 0, 2), put(out, 0, 4);
    put(out, header, 4);
    out += name;
    size_t end = out.size();
    put(out, 0x06054b50, 4);
    put(out, 0, 2), put(out, 0, 2), put(out, count, 2), put(out, count, 2);
    put(out, end - start, 4), put(out, start, 4), put(out, 0, 2);
    return out;
  }
};

std::string refusal(const std::string& file, const ZipLimits& limits = {}) {
  return message_of([&] {
    ZipArchive archive(as_bytes(file), "x.zip", limits);
    for (const ZipEntry& entry : archive.entries()) archive.bytes(entry);
  });
}

#define EXPECT_REFUSED(file, part) EXPECT_NE(refusal(file).find(part), std::string::npos) << refusal(file)

TEST(Crc32, AgreesWithZlibAtEveryLengthAndStart) {
  std::string data(1000, '\0');
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * i * 31 + i * 7 + 3);
  for (size_t start = 0; start < 17; ++start)
    for (size_t size = 0; size + start <= 400; ++size) {
      auto part = as_bytes(std::string_view(data).substr(start, size));
      auto right = ::crc32(0x12345678, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(size));
      ASSERT_EQ(tenon::crc32(part, 0x12345678), right);
      ASSERT_EQ(detail::crc32_by_tables(part, 0x12345678), right);
    }
}

class ZipStyles : public testing::TestWithParam<ZipStyle> {};
INSTANTIATE_TEST_SUITE_P(Zip, ZipStyles, testing::Values(ZipStyle::pytorch, ZipStyle::plain));

TEST_P(ZipStyles, WhatIsWrittenIsRead) {
  Files files{{"r/data.pkl", "abc"}, {"r/empty", ""}, {"r/\xC3\xA9", std::string(100'000, 'q')}};
  std::string file = written(files, GetParam());
  ZipArchive archive(as_bytes(file), "x.zip");
  ASSERT_EQ(archive.entries().size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(archive.entries()[i].name, files[i].first);
  for (const auto& [name, content] : files) EXPECT_EQ(archive.content(*archive.find(name)), content);
  EXPECT_EQ(archive.find("r/none"), nullptr);
}

TEST_P(ZipStyles, EveryTruncationIsRefused) {
  std::string file = written({{"a", "123"}, {"b", "45"}}, GetParam());
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_NE(refusal(file.substr(0, size)).find("not a valid zip archive"), std::string::npos) << size;
}

TEST_P(ZipStyles, AnyChangedByteIsRefusedOrHarmless) {
  std::string good = written({{"a", "123"}, {"b", "45"}}, GetParam());
  for (size_t at = 0; at < good.size(); ++at)
    for (int change : {1, 0x80, 0xFF}) {
      std::string file = good;
      file[at] = static_cast<char>(file[at] ^ change);
      refusal(file);
    }
}

TEST(ZipWriter, ContentStartsAtMultiplesOf64AsInPyTorch) {
  std::string file =
      written({{"archive/data.pkl", "abc"}, {"archive/data/0", std::string(100, 'x')}, {"archive/version", "3\n"}});
  ZipArchive archive(as_bytes(file), "x.zip");
  for (const ZipEntry& entry : archive.entries()) EXPECT_EQ(entry.data % 64, 0u);
  EXPECT_EQ(file.substr(0, 30), std::string("PK\3\4\0\0\x8\x8\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x10\0\x12\0", 30));
  EXPECT_EQ(file.substr(46, 4), std::string("FB\x0e\0", 4));
}

TEST(ZipWriter, RefusesNamesThatLeaveTheArchive) {
  for (std::string name : {"", "/a", "..", "a/../b", "../a", "a/.."})
    EXPECT_THROW(written({{name, ""}}), Error) << name;
  EXPECT_NO_THROW(written({{"a..b/...", ""}}));
}

TEST(ZipArchive, StoredContentIsAPartOfTheFile) {
  std::string file = OneEntry().make();
  ZipArchive archive(as_bytes(file), "x.zip");
  EXPECT_EQ(archive.content(*archive.find("a/b")).data(), file.data() + 33);
}

TEST(ZipArchive, DeflatedContentIsInflatedOnce) {
  std::string content(50'000, 'z');
  OneEntry one{.packed = deflated(content),
               .size = content.size(),
               .local_size = content.size(),
               .method = 8,
               .local_method = 8};
  one.crc = crc32(as_bytes(content));
  std::string file = one.make();
  ZipArchive archive(as_bytes(file), "x.zip");
  auto bytes = archive.bytes(archive.entries()[0]);
  EXPECT_EQ(as_string(bytes), content);
  EXPECT_EQ(archive.bytes(archive.entries()[0]).data(), bytes.data());
}

TEST(ZipArchive, DeflatedContentOfAnotherLengthIsRefused) {
  std::string content(5'000, 'z');
  for (size_t claimed : {size_t{0}, size_t{4'999}, size_t{5'001}}) {
    OneEntry one{.packed = deflated(content), .size = claimed, .local_size = claimed, .method = 8, .local_method = 8};
    EXPECT_REFUSED(one.make(), "does not inflate to its");
  }
}

TEST(ZipArchive, AnImplausibleSizeIsRefusedBeforeMemoryIsTaken) {
  OneEntry one{.size = 900'000'000, .local_size = 900'000'000, .method = 8, .local_method = 8};
  EXPECT_REFUSED(one.make(), "more than deflate can");
  one.size = one.local_size = 2'000'000'000;
  EXPECT_REFUSED(one.make(), "above the limit of 1073741824");
}

TEST(ZipArchive, TheInflatedSizesAreLimitedTogether) {
  std::string content(5'000, 'z');
  OneEntry one{.packed = deflated(content), .size = 5'000, .local_size = 5'000, .method = 8, .local_method = 8};
  one.crc = crc32(as_bytes(content));
  EXPECT_EQ(refusal(one.make(), {.inflated = 5'000}), "");
  EXPECT_NE(refusal(one.make(), {.inflated = 4'999}), "");
}

TEST(ZipArchive, DamagedContentIsRefusedWhenUsedAndNotBefore) {
  std::string file = written({{"a", "123"}, {"b", "45"}});
  file[64] = 'X';
  ZipArchive archive(as_bytes(file), "x.zip");
  EXPECT_EQ(as_string(archive.bytes_unchecked(*archive.find("a"))), "X23");
  EXPECT_NE(message_of([&] { archive.bytes(*archive.find("a")); }).find("entry 'a' does not have the content"),
            std::string::npos);
  EXPECT_NO_THROW(archive.bytes(*archive.find("b")));
}

TEST(ZipArchive, RefusesBadEntries) {
  EXPECT_EQ(refusal(OneEntry().make()), "");
  EXPECT_REFUSED((OneEntry{.flags = 1, .local_flags = 1}.make()), "is encrypted");
  EXPECT_REFUSED((OneEntry{.method = 12, .local_method = 12}.make()), "compression method 12");
  EXPECT_REFUSED((OneEntry{.local_method = 8}.make()), "another compression method");
  EXPECT_REFUSED((OneEntry{.local_name = "a/c"}.make()), "another name");
  EXPECT_REFUSED((OneEntry{.local_size = 4}.make()), "another size");
  EXPECT_REFUSED((OneEntry{.flags = 8}.make()), "another set of flags");
  EXPECT_REFUSED((OneEntry{.size = 4}.make()), "two sizes");
  EXPECT_REFUSED((OneEntry{.header = 3}.make()), "no local header");
  EXPECT_REFUSED((OneEntry{.header = 4000}.make()), "past the end of the file");
  EXPECT_REFUSED((OneEntry{.count = 2}.make()), "cannot hold 2 entries");
  EXPECT_REFUSED((OneEntry{.count = 0}.make()), "more than its 0 entries");
  EXPECT_REFUSED((OneEntry{.disk = 1}.make()), "several disks");
  for (std::string name : {std::string(), std::string("/a"), std::string("a/../b"), std::string("a\0b", 3)})
    EXPECT_REFUSED((OneEntry{.name = name, .local_name = name}.make()), "the entry name ");
}

TEST(ZipArchive, RefusesDuplicateNames) {
  std::string file = written({{"aa", "1"}, {"ab", "2"}});
  for (size_t at = file.find("ab"); at != std::string::npos; at = file.find("ab", at)) file[at + 1] = 'a';
  EXPECT_REFUSED(file, "two entries are named 'aa'");
}

TEST(ZipArchive, RefusesOverlappingEntries) {
  // The second directory entry is sent to the first one's header.
  std::string file = written({{"a", "1"}, {"a", "1"}});
  size_t second = file.rfind("PK\1\2");
  file.replace(second + 42, 4, 4, '\0');
  EXPECT_REFUSED(file, "overlaps another");
}

TEST(ZipArchive, RefusesTooManyEntries) {
  EXPECT_NE(refusal(written({{"a", ""}, {"b", ""}}), {.entries = 1}).find("above the limit of 1"), std::string::npos);
}

TEST(ZipArchive, ACommentAfterTheEndRecordIsFine) {
  std::string file = OneEntry().make();
  file[file.size() - 2] = 3;
  EXPECT_EQ(refusal(file + "abc"), "");
  EXPECT_REFUSED(file + "ab", "no end record");
}

TEST(ZipArchive, DisagreeingEndRecordsAreRefused) {
  std::string file = written({{"a", "1"}});
  size_t end = file.rfind("PK\5\6");
  file[end + 16] = static_cast<char>(file[end + 16] + 1);
  EXPECT_REFUSED(file, "the two end records disagree");
}

TEST(ZipArchive, Zip64SizesAreRead) {
  // The sizes of a pytorch entry moved to a zip64 field of the directory.
  std::string file = written({{"a", "12345"}});
  size_t central = file.rfind("PK\1\2"), end64 = file.rfind("PK\6\6");
  std::string extra;
  put(extra, 1, 2), put(extra, 24, 2), put(extra, 5, 8), put(extra, 5, 8), put(extra, 0, 8);
  file.replace(central + 20, 8, 8, '\xFF');
  file.replace(central + 42, 4, 4, '\xFF');
  file[central + 30] = 28;
  file.insert(end64, extra);
  end64 += 28;
  file[end64 + 40] = static_cast<char>(file[end64 + 40] + 28);
  size_t locator = end64 + 56, end = locator + 20;
  file[locator + 8] = static_cast<char>(file[locator + 8] + 28);
  file[end + 12] = static_cast<char>(file[end + 12] + 28);
  ZipArchive archive(as_bytes(file), "x.zip");
  EXPECT_EQ(archive.content(archive.entries()[0]), "12345");
  file[central + 47 + 2] = 16;
  EXPECT_REFUSED(file, "zip64 field of 'a' is too short");
}

}  // namespace
}  // namespace tenon

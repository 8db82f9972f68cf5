#include "tenon/io/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "tenon/base/error.h"
#include "tenon/base/file.h"

namespace tenon {
namespace {

std::string with_header(const std::string& header, const std::string& data) {
  uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

std::vector<NamedArray> read(const std::string& file) {
  return read_safetensors(std::as_bytes(std::span(file)), "weights");
}

std::string failure(const std::string& file) {
  try {
    read(file);
  } catch (const Error& e) { return e.what(); }
  return "no error";
}

TEST(Safetensors, ReadsNamesSizesAndElements) {
  auto arrays = read(with_header(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"I16","shape":[2,1],"data_offsets":[0,4]},"a":{"dtype":"BOOL","shape":[],"data_offsets":[4,5]}})",
      std::string("\x01\x00\xff\xff\x02", 5)));
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].name, "b");
  EXPECT_EQ(arrays[0].array.sizes, (std::vector<int64_t>{2, 1}));
  int16_t numbers[2];
  std::memcpy(numbers, arrays[0].array.bytes.data(), 4);
  EXPECT_EQ(numbers[1], -1);
  EXPECT_EQ(arrays[1].array.bytes[0], std::byte(1));
}

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  std::string path =
      (std::filesystem::temp_directory_path() / ("tenon_safetensors_" + std::to_string(::getpid()))).string();
  uint8_t small[3] = {1, 2, 3};
  double large[2] = {0.5, -2};
  std::vector<NamedArray> arrays{
      {"small", {.dtype = "u8", .sizes = {3}, .strides = {1}, .bytes = std::as_bytes(std::span(small)), .owner = {}}},
      {"large", {.dtype = "f64", .sizes = {2}, .strides = {1}, .bytes = std::as_bytes(std::span(large)), .owner = {}}}};
  SafetensorsMetadata words = {{"epoch", "3"}, {"\"odd\" key", "a\nb"}};
  save_safetensors(path, arrays, words);
  auto back = load_any_arrays(path);
  EXPECT_EQ(load_safetensors_metadata(path), words);
  std::filesystem::remove(path);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(back[0].name, "large");
  EXPECT_EQ(std::memcmp(back[0].array.bytes.data(), large, 16), 0);
  EXPECT_EQ(std::memcmp(back[1].array.bytes.data(), small, 3), 0);
}

TEST(Safetensors, DamagedFilesAreErrors) {
  EXPECT_EQ(failure("abc"), "weights: no safetensors file: it has 3 bytes");
  EXPECT_NE(failure(with_header("{}", "").substr(0, 9)).find("cut off"), std::string::npos);
  EXPECT_NE(failure(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "1234"))
                .find("are not in the file"),
            std::string::npos);
  EXPECT_NE(failure(with_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "1234"))
                .find("expected 8 bytes"),
            std::string::npos);
  EXPECT_NE(failure(with_header(R"({"a":{"dtype":"F3","shape":[1],"data_offsets":[0,4]}})", "1234")).find("'F3'"),
            std::string::npos);
  EXPECT_NE(
      failure(with_header(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}})", "1234"))
          .find("any memory"),
      std::string::npos);
  EXPECT_NE(failure(with_header(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "1234")).find("negative"),
            std::string::npos);
}

}  // namespace
}  // namespace tenon

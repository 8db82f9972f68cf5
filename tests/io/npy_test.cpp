#include "tenon/io/npy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "tenon/base/file.h"
#include "tests/io/message.h"

namespace tenon {
namespace {

std::string npy(std::string header, std::string_view payload, int version = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  header += '\n';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) out += static_cast<char>(header.size() >> (8 * i));
  return out + header + std::string(payload);
}
Array read(std::string_view file) { return read_npy(std::as_bytes(std::span(file)), "x.npy"); }
std::string refusal(std::string_view file) {
  return message_of([&] { read(file); });
}
template <class T>
std::vector<T> values(const Array& array) {
  std::vector<T> out(array.bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), array.bytes.data(), array.bytes.size());
  return out;
}
template <class T>
Array make(std::string dtype, std::vector<int64_t> sizes, std::vector<int64_t> strides, const std::vector<T>& content) {
  return {std::move(dtype), std::move(sizes), std::move(strides), std::as_bytes(std::span(content)), nullptr};
}

const std::string f32_header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
const std::string two_floats("\0\0\x80\x3f\0\0\0\x40", 8);

TEST(Npy, AnArchiveWithoutArraysIsEmpty) {
  std::string end_record = "PK\x05\x06" + std::string(18, '\0');
  std::string path = (std::filesystem::temp_directory_path() / text("tenon_empty_", getpid(), ".npz")).string();
  write_file_atomically(path, end_record);
  EXPECT_TRUE(load_arrays(path).empty());
  std::filesystem::remove(path);
}

TEST(Npy, ReadsEveryVersion) {
  for (int version : {1, 2, 3}) {
    Array array = read(npy(f32_header, two_floats, version));
    EXPECT_EQ(array.dtype, "f32");
    EXPECT_EQ(array.sizes, std::vector<int64_t>{2});
    EXPECT_EQ(values<float>(array), (std::vector<float>{1, 2}));
  }
  EXPECT_NE(refusal(npy(f32_header, two_floats, 4)).find("version 4"), std::string::npos);
}

TEST(Npy, ReadsScalarsAndEmptyArrays) {
  EXPECT_EQ(read(npy("{'descr': '|u1', 'fortran_order': False, 'shape': ()}", "x")).sizes, std::vector<int64_t>{});
  Array empty = read(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 0, 2)}", ""));
  EXPECT_EQ(empty.sizes, (std::vector<int64_t>{3, 0, 2}));
  EXPECT_EQ(empty.strides, (std::vector<int64_t>{2, 2, 1}));
}

TEST(Npy, FortranOrderBecomesStrides) {
  EXPECT_EQ(read(npy("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3)}", "abcdef")).strides,
            (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(read(npy("{'descr': '|i1', 'fortran_order': False, 'shape': (2, 3)}", "abcdef")).strides,
            (std::vector<int64_t>{3, 1}));
}

TEST(Npy, BigEndianIsTurnedByWord) {
  EXPECT_EQ(
      values<uint16_t>(read(npy("{'descr': '>u2', 'fortran_order': False, 'shape': (2,)}", std::string("\1\2\3\4")))),
      (std::vector<uint16_t>{0x102, 0x304}));
  EXPECT_EQ(values<float>(read(npy("{'descr': '>c8', 'fortran_order': False, 'shape': (1,)}",
                                   std::string("\x3f\x80\0\0\x40\0\0\0", 8)))),
            (std::vector<float>{1, 2}));
}

TEST(Npy, BooleansAreZeroOrOne) {
  EXPECT_EQ(
      values<uint8_t>(read(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", std::string("\0\1\7", 3)))),
      (std::vector<uint8_t>{0, 1, 1}));
}

TEST(Npy, RefusesOtherPayloadSizes) {
  EXPECT_EQ(refusal(npy(f32_header, "1234567")), "x.npy: an array of f32 and sizes [2] takes 8 bytes, found 7");
  EXPECT_NE(refusal(npy(f32_header, "123456789")), "");
}

TEST(Npy, RefusesSizesThatOverflow) {
  for (std::string_view shape :
       {"(4611686018427387904, 4)", "(4294967296, 4294967296)", "(0, 9223372036854775807, 9223372036854775807)"})
    EXPECT_NE(
        refusal(npy(text("{'descr': '<f4', 'fortran_order': False, 'shape': ", shape, "}"), "")).find("is too large"),
        std::string::npos);
}

TEST(Npy, RefusesBadHeaders) {
  for (std::string_view header :
       {"", "{", "{}", "[]", "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", "{'descr': '<f4', 'fortran_order': False, 'shape': (2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [2]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} + 1",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f\\x34', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1,)}"})
    EXPECT_NE(refusal(npy(std::string(header), two_floats)).find("not a valid .npy header"), std::string::npos)
        << header;
}

TEST(Npy, NamesADtypeItDoesNotRead) {
  for (std::string_view dtype : {"|O", "<U3", "|S3", "<M8[s]", "|V2", "<f16", "f4", "|f4", ""})
    EXPECT_NE(refusal(npy(text("{'descr': '", dtype, "', 'fortran_order': False, 'shape': (2,)}"), two_floats))
                  .find(text("the NumPy dtype '", dtype, "' is not read")),
              std::string::npos);
}

TEST(Npy, EveryTruncationIsRefused) {
  std::string file = npy(f32_header, two_floats);
  for (size_t size = 0; size < file.size(); ++size) EXPECT_NE(refusal(file.substr(0, size)), "") << size;
}

TEST(Npy, WrittenBytesAreNumPys) {
  std::vector<float> content{1, 2};
  std::string bytes = npy_bytes(make("f32", {2}, {1}, content));
  EXPECT_EQ(bytes.size(), 128u + 8u);
  EXPECT_EQ(bytes.substr(0, 10), std::string("\x93NUMPY\1\0\x76\0", 10));
  EXPECT_EQ(bytes.substr(10, 57), "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }");
  EXPECT_EQ(bytes[127], '\n');
}

TEST(Npy, WhatIsWrittenIsRead) {
  std::vector<int16_t> content{1, 2, 3, 4, 5, 6};
  Array c = read(npy_bytes(make("i16", {2, 3}, {3, 1}, content)));
  EXPECT_EQ(values<int16_t>(c), content);
  EXPECT_EQ(c.strides, (std::vector<int64_t>{3, 1}));
  Array fortran = read(npy_bytes(make("i16", {2, 3}, {1, 2}, content)));
  EXPECT_EQ(values<int16_t>(fortran), content);
  EXPECT_EQ(fortran.strides, (std::vector<int64_t>{1, 2}));
}

TEST(Npy, OtherStridesAreWrittenInCOrder) {
  std::vector<int16_t> content{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(values<int16_t>(read(npy_bytes(make("i16", {3}, {2}, content)))), (std::vector<int16_t>{1, 3, 5}));
  EXPECT_EQ(values<int16_t>(read(npy_bytes(make("i16", {2, 2}, {0, 1}, content)))), (std::vector<int16_t>{1, 2, 1, 2}));
}

TEST(Npz, WhatIsWrittenIsRead) {
  std::string path = text(testing::TempDir(), "tenon_npy_", ::getpid());
  std::vector<double> a{1.5, 2.5};
  std::vector<uint8_t> b{7};
  save_npz(path, std::vector<NamedArray>{{"a", make("f64", {2}, {1}, a)}, {"b", make("u8", {}, {}, b)}});
  std::vector<NamedArray> arrays = load_arrays(path);
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].name, "a");
  EXPECT_EQ(values<double>(arrays[0].array), a);
  EXPECT_EQ(arrays[1].array.sizes, std::vector<int64_t>{});
  save_npy(path, make("f64", {2}, {1}, a));
  arrays = load_arrays(path);
  ASSERT_EQ(arrays.size(), 1u);
  EXPECT_EQ(values<double>(arrays[0].array), a);
  write_file_atomically(path, "hello");
  EXPECT_NE(message_of([&] { load_arrays(path); }).find("neither an .npy nor an .npz file"), std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tenon

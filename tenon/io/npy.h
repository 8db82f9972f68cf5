// Arrays as NumPy keeps them: .npy (one array) and .npz (a zip of them).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct Array {
  std::string dtype;  // f16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool c64 c128
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;       // in elements; arrays that were read have C or Fortran order
  std::span<const std::byte> bytes;   // little endian; aligned for the dtype where read; of a bool 0 or 1
  std::shared_ptr<const void> owner;  // keeps the bytes: often the mapped file itself, which is why it is shared
};

struct NamedArray {
  std::string name;
  Array array;
};

/// Reads an .npy or an .npz, told apart by content. The array of an .npy has no name.
std::vector<NamedArray> load_arrays(const std::string& path);

/// The same from memory. `owner` keeps the bytes; without one the arrays get copies. `subject` names the file in
/// messages.
Array read_npy(std::span<const std::byte> file, const std::string& subject, std::shared_ptr<const void> owner = {});
std::vector<NamedArray> read_npz(std::span<const std::byte> file, const std::string& subject,
                                 std::shared_ptr<const void> owner = {});
bool looks_like_npy(std::span<const std::byte> bytes);

/// The bytes that numpy.save writes. C and Fortran order are kept, other strides are written in C order.
std::string npy_bytes(const Array& array);
void save_npy(const std::string& path, const Array& array);
/// As numpy.savez: stored, not deflated.
void save_npz(const std::string& path, std::span<const NamedArray> arrays);

}  // namespace tenon

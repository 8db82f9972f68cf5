// Element types of tensors, and the other small enums that operator arguments carry.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon {

enum class DType : uint8_t {
  boolean,
  u8,
  i8,
  i16,
  i32,
  i64,
  u16,
  u32,
  u64,
  f16,
  bf16,
  f32,
  f64,
  c32,
  c64,
  c128,
  f8_e4m3fn,
  f8_e5m2,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  f8_e8m0fnu
};

std::string_view name(DType dtype);                    // f32, i64, bool: as print_readable writes it
std::string_view torch_name(DType dtype);              // float32, int64, bool: as torch.float32
std::optional<DType> dtype_of(std::string_view name);  // either spelling
size_t item_size(DType dtype);
bool is_floating(DType dtype);  // real floating point, f8 included
bool is_complex(DType dtype);
inline bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
DType complex_of(DType dtype);  // that computes with these: c64 of f32, and of what has none of its own
DType real_of(DType dtype);     // of its parts: f32 of c64; itself where it is real
bool is_integral(DType dtype);  // bool is not integral
inline bool is_differentiable(DType dtype) { return is_floating(dtype) || is_complex(dtype); }
/// What PyTorch's promotion makes of two dtypes of equal standing (two tensors with dimensions, say).
DType promote(DType a, DType b);
inline void append_text(std::string& out, DType dtype) { out += name(dtype); }

/// The kinds of devices that PyTorch knows, by its names.
enum class DeviceType : uint8_t {
  cpu,
  cuda,
  ipu,
  xpu,
  mkldnn,
  opengl,
  opencl,
  ideep,
  hip,
  ve,
  fpga,
  maia,
  xla,
  lazy,
  vulkan,
  mps,
  meta,
  hpu,
  mtia,
  privateuseone
};
std::string_view name(DeviceType type);
std::optional<DeviceType> device_type_of(std::string_view name);

struct Device {
  DeviceType type = DeviceType::cpu;
  int index = -1;  // -1: none given
  bool operator==(const Device&) const = default;
};
void append_text(std::string& out, const Device& device);  // cpu, cuda:0

enum class Layout : uint8_t { unknown, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, mkldnn, strided };
enum class MemoryFormat : uint8_t { unknown, contiguous, channels_last, channels_last_3d, preserve };
std::string_view name(Layout layout);               // strided
std::string_view name(MemoryFormat memory_format);  // contiguous_format

}  // namespace tenon

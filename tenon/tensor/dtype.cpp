#include "tenon/tensor/dtype.h"

#include "tenon/base/error.h"

namespace tenon {
namespace {
struct Facts {
  DType dtype;
  std::string_view name, torch_name;
  size_t size;
};
constexpr Facts table[] = {{DType::boolean, "bool", "bool", 1},
                           {DType::u8, "u8", "uint8", 1},
                           {DType::i8, "i8", "int8", 1},
                           {DType::i16, "i16", "int16", 2},
                           {DType::i32, "i32", "int32", 4},
                           {DType::i64, "i64", "int64", 8},
                           {DType::u16, "u16", "uint16", 2},
                           {DType::u32, "u32", "uint32", 4},
                           {DType::u64, "u64", "uint64", 8},
                           {DType::f16, "f16", "float16", 2},
                           {DType::bf16, "bf16", "bfloat16", 2},
                           {DType::f32, "f32", "float32", 4},
                           {DType::f64, "f64", "float64", 8},
                           {DType::c32, "c32", "complex32", 4},
                           {DType::c64, "c64", "complex64", 8},
                           {DType::c128, "c128", "complex128", 16},
                           {DType::f8_e4m3fn, "f8e4m3fn", "float8_e4m3fn", 1},
                           {DType::f8_e5m2, "f8e5m2", "float8_e5m2", 1},
                           {DType::f8_e4m3fnuz, "f8e4m3fnuz", "float8_e4m3fnuz", 1},
                           {DType::f8_e5m2fnuz, "f8e5m2fnuz", "float8_e5m2fnuz", 1},
                           {DType::f8_e8m0fnu, "f8e8m0fnu", "float8_e8m0fnu", 1}};
const Facts& facts(DType dtype) { return table[static_cast<size_t>(dtype)]; }
}  // namespace

std::string_view name(DType dtype) { return facts(dtype).name; }
std::string_view torch_name(DType dtype) { return facts(dtype).torch_name; }
size_t item_size(DType dtype) { return facts(dtype).size; }

std::optional<DType> dtype_of(std::string_view name) {
  for (const Facts& f : table)
    if (f.name == name || f.torch_name == name) return f.dtype;
  return std::nullopt;
}

bool is_floating(DType d) { return (d >= DType::f16 && d <= DType::f64) || d >= DType::f8_e4m3fn; }
bool is_complex(DType d) { return d >= DType::c32 && d <= DType::c128; }
bool is_integral(DType d) { return d >= DType::u8 && d <= DType::u64; }

DType complex_of(DType dtype) {
  if (is_complex(dtype)) return dtype;
  return dtype == DType::f64 ? DType::c128 : dtype == DType::f16 ? DType::c32 : DType::c64;
}
DType real_of(DType dtype) {
  return dtype == DType::c128  ? DType::f64
         : dtype == DType::c64 ? DType::f32
         : dtype == DType::c32 ? DType::f16
                               : dtype;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  auto rank = [](DType d) { return d == DType::boolean ? 0 : is_integral(d) ? 1 : is_floating(d) ? 2 : 3; };
  if (rank(a) < rank(b)) std::swap(a, b);
  if (is_complex(a)) {
    if (is_complex(b)) return a > b ? a : b;
    if (b == DType::f64) return DType::c128;
    if (b == DType::f32 && a == DType::c32) return DType::c64;
    return a;
  }
  if (rank(a) > rank(b)) return a;
  if (is_floating(a)) {  // f16 with bf16 has no common 16-bit type
    if (a > b) std::swap(a, b);
    require(b < DType::f8_e4m3fn, "promotion of ", a, " and ", b, " is not defined; convert one of them first");
    return a == DType::f16 && b == DType::bf16 ? DType::f32 : b;
  }
  auto is_unsigned = [](DType d) { return d == DType::u8 || (d >= DType::u16 && d <= DType::u64); };
  if (is_unsigned(a) && !is_unsigned(b)) std::swap(a, b);
  if (is_unsigned(a) == is_unsigned(b)) return item_size(a) > item_size(b) ? a : b;
  // signed a with unsigned b: the next signed type that holds both
  require(b == DType::u8, "promotion of ", a, " and ", b, " is not defined; convert one of them first");
  return a == DType::i8 ? DType::i16 : a;
}

std::string_view name(DeviceType type) {
  switch (type) {
    case DeviceType::cpu: return "cpu";
    case DeviceType::cuda: return "cuda";
    case DeviceType::ipu: return "ipu";
    case DeviceType::xpu: return "xpu";
    case DeviceType::mkldnn: return "mkldnn";
    case DeviceType::opengl: return "opengl";
    case DeviceType::opencl: return "opencl";
    case DeviceType::ideep: return "ideep";
    case DeviceType::hip: return "hip";
    case DeviceType::ve: return "ve";
    case DeviceType::fpga: return "fpga";
    case DeviceType::maia: return "maia";
    case DeviceType::xla: return "xla";
    case DeviceType::lazy: return "lazy";
    case DeviceType::vulkan: return "vulkan";
    case DeviceType::mps: return "mps";
    case DeviceType::meta: return "meta";
    case DeviceType::hpu: return "hpu";
    case DeviceType::mtia: return "mtia";
    case DeviceType::privateuseone: return "privateuseone";
  }
  unreachable();
}

std::optional<DeviceType> device_type_of(std::string_view wanted) {
  for (auto i = static_cast<int>(DeviceType::cpu); i <= static_cast<int>(DeviceType::privateuseone); ++i)
    if (auto type = static_cast<DeviceType>(i); name(type) == wanted) return type;
  return std::nullopt;
}

void append_text(std::string& out, const Device& device) {
  out += name(device.type);
  if (device.index >= 0) out += ":" + std::to_string(device.index);
}

std::string_view name(Layout layout) {
  switch (layout) {
    case Layout::unknown: return "unknown";
    case Layout::sparse_coo: return "sparse_coo";
    case Layout::sparse_csr: return "sparse_csr";
    case Layout::sparse_csc: return "sparse_csc";
    case Layout::sparse_bsr: return "sparse_bsr";
    case Layout::sparse_bsc: return "sparse_bsc";
    case Layout::mkldnn: return "_mkldnn";
    case Layout::strided: return "strided";
  }
  unreachable();
}

std::string_view name(MemoryFormat memory_format) {
  switch (memory_format) {
    case MemoryFormat::unknown: return "unknown";
    case MemoryFormat::contiguous: return "contiguous_format";
    case MemoryFormat::channels_last: return "channels_last";
    case MemoryFormat::channels_last_3d: return "channels_last_3d";
    case MemoryFormat::preserve: return "preserve_format";
  }
  unreachable();
}

}  // namespace tenon

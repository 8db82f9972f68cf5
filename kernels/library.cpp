#include "kernels/library.h"

#include <algorithm>

namespace tenon::kernels {
namespace {

const std::byte* code(std::string_view name, Kind kind, tenon_target target) {
  for (const Image& image : images()) {
    if (image.target != target) continue;
    auto at = std::lower_bound(image.symbols.begin(), image.symbols.end(), name,
                               [](const Symbol& symbol, std::string_view wanted) { return symbol.name < wanted; });
    if (at != image.symbols.end() && at->name == name && at->kind == kind) return image.bytes.data() + at->offset;
  }
  return nullptr;
}

tenon_target detect() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi") ||
      !__builtin_cpu_supports("bmi2"))
    return TENON_TARGET_PORTABLE;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl"))
    return TENON_TARGET_X86_64_V3;
  return TENON_TARGET_X86_64_V4;
}

template <class Function>
Function as(const std::byte* code) {
  return reinterpret_cast<Function>(const_cast<std::byte*>(code));
}

}  // namespace

tenon_target machine_target() {
  static const tenon_target target = detect();
  return target;
}

tenon_kernel find(std::string_view name, tenon_target target) {
  return as<tenon_kernel>(code(name, Kind::kernel, target));
}
tenon_kernel find(std::string_view name) { return find(name, machine_target()); }
tenon_host_function find_host(std::string_view name, tenon_target target) {
  return as<tenon_host_function>(code(name, Kind::host_function, target));
}
tenon_host_function find_host(std::string_view name) { return find_host(name, machine_target()); }

}  // namespace tenon::kernels

// The kernel library as the interpreter and the compiler see it: code that runs in place, and the same bytes for
// artifacts to carry. Which functions there are is read from the objects; kernels/FAMILY.h declares their parameters.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/abi.h"

namespace tenon::kernels {

enum class Kind : uint8_t { kernel, host_function };

struct Symbol {
  std::string_view name;  // "gemm_f32": without prefix
  Kind kind;
  uint32_t offset, size;
};

/// A family's code and constants for one target. Position-independent: works wherever it is placed at a multiple of 64
/// and may be executed. Nothing in it is written, nothing outside it is referred to.
struct Image {
  std::string_view family;
  tenon_target target;
  std::span<const std::byte> bytes;  // executable where it lies
  std::span<const Symbol> symbols;   // by name; the same names for every target
};

/// Sorted by family, then by target.
std::span<const Image> images();

/// The best target whose instructions this machine has.
tenon_target machine_target();

/// The function of that name for this machine, or for a target that it has; null if there is none.
tenon_kernel find(std::string_view name);
tenon_kernel find(std::string_view name, tenon_target target);
tenon_host_function find_host(std::string_view name);
tenon_host_function find_host(std::string_view name, tenon_target target);

}  // namespace tenon::kernels

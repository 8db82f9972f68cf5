// Kernel IR as x86-64 machine code: position-independent bytes, constants behind the code, nothing else needed. Bit for
// bit what the interpreter gives.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tenon/compile/kernel.h"

namespace tenon::compile {

/// x86-64-v3: AVX2, FMA, BMI2, F16C. x86-64-v4: AVX-512 F, BW, DQ, VL.
enum class Isa : uint8_t { v3, v4 };
std::string_view name(Isa isa);
bool machine_has(Isa isa);

struct NativeSymbol {
  std::string name;
  size_t offset = 0, size = 0;
};

/// `bytes` is to be placed at a multiple of 64, readable and executable. Code comes first, constants from
/// `constants_at` on; a kernel is called at its symbol, which starts with endbr64.
struct NativeCode {
  std::vector<uint8_t> bytes;
  size_t constants_at = 0;
  std::vector<NativeSymbol> kernels;
};

NativeCode emit_native(std::span<const Kernel> kernels, Isa isa);

}  // namespace tenon::compile

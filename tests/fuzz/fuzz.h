// A fuzz target is one function: it reads the bytes, and may only fail with an Error.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tenon/base/error.h"

namespace tenon {
using FuzzBytes = std::span<const std::byte>;
void fuzz(FuzzBytes bytes);
inline std::string_view as_text(FuzzBytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// A claim about what was read that must hold whatever the input.
inline void claim(bool ok) {
  if (!ok) __builtin_trap();
}
}  // namespace tenon

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    tenon::fuzz(std::as_bytes(std::span(data, size)));
  } catch (const tenon::Error&) {}  // anything else ends the run
  return 0;
}

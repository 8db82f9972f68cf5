// Unwind tables for code without any of its own, so that debuggers and profilers walk through kernels. A function that
// begins with endbr64; push rbp; mov rbp, rsp is described by its frame pointer, every other one as a leaf that does
// not move the stack pointer.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tenon::package {

struct UnwoundFunction {
  uint64_t address = 0;
  std::span<const std::byte> code;
};

/// .eh_frame, to be loaded at `address`. Its size depends only on the functions.
std::vector<std::byte> make_eh_frame(std::span<const UnwoundFunction> functions, uint64_t address);
/// .eh_frame_hdr: a table for binary search over `eh_frame`, which was made from the same functions.
std::vector<std::byte> make_eh_frame_header(std::span<const UnwoundFunction> functions, uint64_t address,
                                            uint64_t eh_frame_address);

}  // namespace tenon::package

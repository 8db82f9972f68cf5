// Kernel IR as C: scalar, without headers, the same text every time. Built with the flags below it gives the same bits
// as the interpreter and the machine code, on any machine with an fma instruction.
#pragma once
#include <span>
#include <string>

#include "tenon/compile/kernel.h"

namespace tenon::compile {

/// One translation unit. Every kernel is a function of its name: `int name(const struct tenon_args*, long long lo, long
/// long hi)`. The name must be a C identifier.
std::string emit_c(std::span<const Kernel> kernels);

/// Scalar functions for C and C++ to include: each kernel loads its arguments from element 0 of its first buffers and
/// stores its result to element 0 of the last, and becomes a static function `name` of plain numbers.
std::string emit_c_functions(std::span<const Kernel> kernels);

/// What the text must be compiled with, for gcc and clang.
constexpr const char* c_flags =
    "-O3 -std=gnu11 -ffp-contract=off -fwrapv -fno-math-errno -fno-strict-aliasing -fno-trapping-math";

}  // namespace tenon::compile

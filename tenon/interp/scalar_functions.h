// The closed set of scalar functions, spelled for the interpreter: each over a block of elements at a time.
#pragma once
#include <cstddef>

#include "tenon/loop/program.h"

namespace tenon::interp {

/// Elements of a block: boolean as uint8_t, i64, f32, f64.
using BlockFn = void (*)(void* out, const void* a, const void* b, const void* c, size_t n);

/// For an expression node that computes (neither a leaf nor round_to). `operand` is the compute type of its first
/// operand.
BlockFn block_function(loop::Fn fn, loop::Compute operand, loop::Compute result);
BlockFn cast_function(loop::Compute from, loop::Compute to);

/// Converts n elements of a dtype, `stride` elements apart, to or from a block of its compute type.
void load_block(DType dtype, const std::byte* from, int64_t stride, void* block, size_t n);
void store_block(DType dtype, const void* block, std::byte* to, int64_t stride, size_t n);
/// The same for elements at given offsets.
void gather_block(DType dtype, const std::byte* from, const int64_t* offsets, void* block, size_t n);
void scatter_block(DType dtype, const void* block, std::byte* to, const int64_t* offsets, loop::Mode mode,
                   const uint8_t* where, size_t n);
/// What storing to dtype and loading again gives.
void round_block(DType dtype, const void* block, void* out, size_t n);
size_t block_item(loop::Compute compute);

}  // namespace tenon::interp

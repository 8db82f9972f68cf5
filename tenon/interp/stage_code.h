// A stage as the interpreter runs it: instructions over block registers. For stage_compile.cpp and stage_run.cpp only.
#pragma once
#include "tenon/interp/stage.h"

namespace tenon::interp {

inline constexpr int64_t lanes = 1024;          // elements of a block, and terms of a chunk of a long reduction
inline constexpr int64_t short_reduction = 32;  // up to here terms are taken one after another
inline constexpr size_t register_bytes = lanes * 8;

/// base + sum of coefficient * loop index.
struct Linear {
  int64_t base = 0;
  SmallVector<int64_t, 8> by_loop;
};

struct Instruction {
  enum Kind : uint8_t { compute, round, index, load, bounded_load, gather } kind = compute;
  uint32_t out = 0, a = 0, b = 0, c = 0;  // registers
  BlockFn fn = nullptr;
  DType dtype = DType::f32;
  loop::BufferId buffer = 0;
  Linear at;                         // loads: the offset. index: the value
  std::vector<Linear> bounds;        // bounded_load: lanes where one is below 0 take the other value
  SmallVector<uint32_t, 6> indices;  // gather: a register per dim
  SmallVector<int64_t, 6> sizes, strides;
  uint32_t guard = ~0u, otherwise = ~0u;  // registers
  size_t item = 8;                        // bytes of a block element
  bool derived = false;                   // gather: the buffer's dimensions are not those that the program names
};

struct StoreInstruction {
  loop::BufferId buffer = 0;
  DType dtype = DType::f32;
  uint32_t value = 0, where = ~0u;
  loop::Mode mode = loop::Mode::set;
  bool linear = true;
  Linear at;
  SmallVector<uint32_t, 6> indices;
  SmallVector<int64_t, 6> sizes, strides;
};

struct Reduction {
  loop::Combine combine = loop::Combine::sum;
  loop::Compute type = loop::Compute::f32;
  uint32_t value = 0, out = 0;  // registers
};

struct Filled {  // a register that holds one constant
  uint32_t reg;
  loop::Compute type;
  double real;
  int64_t integer;
};

/// A run of consecutive points of some loops, and where the other loops stand.
struct Span {
  size_t first_loop, loop_count;  // the loops the lanes run over
  int64_t start, n;               // linear positions within them
  const int64_t* fixed;           // index of every other loop
};

struct CompiledStage::Impl {
  std::vector<int64_t> extents;  // domain, then reduction
  size_t domain_rank = 0;
  int64_t domain = 1, reduce = 1;
  bool reduces = false, serial = false;
  uint32_t registers = 0;
  std::vector<Filled> constants;
  std::vector<Instruction> inner, outer;  // within the reduction; after it, or all of it
  std::vector<Reduction> reductions;
  std::vector<StoreInstruction> stores;

  void run_block(std::byte* const* buffers, std::byte* memory, int64_t lo, int64_t hi) const;
  void execute(const std::vector<Instruction>& code, std::byte* const* buffers, std::byte* memory,
               const Span& span) const;
  void store(const StoreInstruction& s, std::byte* const* buffers, std::byte* memory, const Span& span) const;
  template <class F>
  void segments(const Linear& at, const Span& span, F&& f) const;
  void load_bounded(const Instruction& ins, const std::byte* base, std::byte* out, const std::byte* otherwise,
                    const Span& span) const;
  void offsets(std::span<const uint32_t> indices, std::span<const int64_t> sizes, std::span<const int64_t> strides,
               std::byte* memory, const uint8_t* where, int64_t n, int64_t* out, bool derived = false) const;
  void reduce_long(std::byte* const* buffers, std::byte* memory, const int64_t* point, int64_t lane) const;
};

}  // namespace tenon::interp

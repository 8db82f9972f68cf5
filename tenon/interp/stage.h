// Runs a stage on memory: over blocks of elements, one scalar function over the block after another.
#pragma once
#include <memory>
#include <vector>

#include "tenon/interp/scalar_functions.h"
#include "tenon/sym/evaluate.h"

namespace tenon::interp {

/// A program with numbers for its symbols, as far as they are known: what stages and anchors are made ready from.
struct Resolved {
  const loop::Program& program;
  std::span<const loop::Buffer> buffers;  // sizes and strides are constants
  const sym::Bindings& symbols;
  int64_t value(SymInt e) const { return e.is_int() ? e.as_int() : sym::evaluate(e, symbols); }
};

/// A stage made ready to run: sizes are constants, expressions are instructions over block registers, indices that are
/// linear in the loops are strides.
class CompiledStage {
 public:
  CompiledStage(const Resolved& program, const loop::Stage& stage);
  ~CompiledStage();
  CompiledStage(CompiledStage&&) noexcept;
  /// buffers[i] points to the first element of buffer i.
  void run(std::byte* const* buffers) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::interp

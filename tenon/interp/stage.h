// Runs a stage on memory: over blocks of elements, one scalar function over the block after another.
#pragma once
#include <memory>
#include <vector>

#include "tenon/interp/scalar_functions.h"

namespace tenon::interp {

/// A stage made ready to run: sizes are constants, expressions are instructions over block registers, indices that are
/// linear in the loops are strides.
class CompiledStage {
 public:
  CompiledStage(const loop::Program& program, const loop::Stage& stage);
  ~CompiledStage();
  CompiledStage(CompiledStage&&) noexcept;
  /// buffers[i] points to the first element of buffer i.
  void run(std::byte* const* buffers) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::interp

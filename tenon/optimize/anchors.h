// Products of matrices and convolutions, and the stage that reads their result.
#pragma once
#include "tenon/optimize/step_list.h"

namespace tenon::optimize {

/// A Gemm or a forward Convolution by what they have in common.
struct Anchor {
  const loop::Operand* out = nullptr;
  const loop::Operand* weights = nullptr;  // a gemm's right side
  const loop::Epilogue* epilogue = nullptr;
  size_t channel = 0;  // the dimension of the result that columns of weights answer to
  bool packed = false, adds_to_result = false;
};
std::optional<Anchor> anchor_of(const loop::Step& step);

/// Which dimension of its buffer each dimension of an operand is; none for those of size 1. Nothing where the operand
/// is not the whole buffer, dimension by dimension.
std::optional<std::vector<std::optional<size_t>>> dimensions_of(const loop::Program& program,
                                                                const loop::Operand& operand);

/// The one stage that reads an anchor's result, by one load, each element once.
struct ResultRead {
  size_t anchor = 0, reader = 0;  // steps
  loop::ExprId load = 0;          // in the reader
  /// The reader's loops over each dimension of the result, outermost first: none over a dimension of size 1, several
  /// where rows of the result are tokens of several sequences.
  std::vector<std::vector<size_t>> loops;
  size_t channels = 0;  // the dimension of the result that columns of weights answer to
  /// The reader's loop over the channels, where it is one.
  std::optional<size_t> channel() const {
    return loops[channels].size() == 1 ? std::optional(loops[channels][0]) : std::nullopt;
  }
};
std::optional<ResultRead> result_read(loop::Program& program, StepList& list, size_t anchor);

/// A stage that the anchor whose result it reads will take in whole: factors and sums by channel of fixed state, a
/// residual, relu.
bool is_epilogue(loop::Program& program, StepList& list, size_t stage);

/// State that the program does not write, or what was made of it, of known sizes.
bool is_fixed(const loop::Program& program, loop::BufferId buffer);
loop::BufferId add_derived(loop::Program& program, std::string name, DType dtype, const Sizes& sizes);
/// Derived buffers that only on_state reads become its own memory.
void settle_derived(loop::Program& program);

}  // namespace tenon::optimize

// What gemm and convolution share on their way to the kernel library: parameters in the order of their structs, packed
// operands and epilogues.
#pragma once
#include "tenon/base/error.h"
#include "tenon/plan/library_parts.h"

namespace tenon::plan {

/// The fields of a params struct of kernels/, one after another.
template <class Params>
class Words {
 public:
  template <class... Values>
  void add(const Values&... values) {
    (put(values), ...);
  }
  void real(double value) { words_.push_back(loop::Param::real(value)); }
  /// Offset and step of a bias, offset and strides of a residual; zeros where there is none.
  void add_epilogue(const loop::Epilogue& e, size_t rank) {
    add(e.has_bias ? e.bias.offset : SymInt(0), e.has_bias ? e.bias.strides[0] : SymInt(0));
    add(e.has_residual ? e.residual.offset : SymInt(0), e.has_residual ? e.residual.strides : Sizes(rank, 0));
  }
  std::vector<loop::Param> take() && {
    expect(words_.size() == sizeof(Params) / 8, "expected ", sizeof(Params) / 8, " parameters, got ", words_.size());
    return std::move(words_);
  }

 private:
  void put(SymInt value) { words_.push_back({value}); }
  void put(const Sizes& values) {
    for (SymInt value : values) put(value);
  }
  std::vector<loop::Param> words_;
};

/// Checks of packed operands and epilogues, beside those that every anchor has.
class MatrixChecks : public Checks {
 public:
  using Checks::Checks;
  /// `o` lies in a buffer of this dtype that has `elements` from its offset on.
  void packed(const loop::Operand& o, DType dtype, SymInt elements);
  /// Its operands fit; adds them to `args`. Gives the flags of the kernels.
  SymInt epilogue(const loop::Epilogue& e, SymInt channels, const loop::Operand& result, std::vector<LibraryArg>& args);
};

/// Columns of a block of a result with so many rows, columns and terms; where only the run tells these, the least it
/// may be.
SymInt block_columns(SymInt rows, SymInt columns, SymInt terms);
/// How many blocks of columns there are; at most, where only the run tells.
SymInt column_blocks(SymInt rows, SymInt columns, SymInt terms);
/// How many blocks of rows there are; at most, where only the run tells.
SymInt row_blocks(SymInt rows);
/// A block has all columns.
bool has_whole_rows(SymInt rows, SymInt columns, SymInt terms);
/// Blocks that make a chunk worth a thread, of so many rows and `work` products for each: half a microsecond at least.
/// Up to four rows cost the same: what is waited for is the right side.
SymInt block_grain(SymInt blocks, SymInt rows, SymInt work);

LibraryCalls convolution_pack(const loop::Program& program, const loop::Pack& pack);

}  // namespace tenon::plan

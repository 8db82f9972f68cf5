// One stage of the executed program as Kernel IR: the order of reductions is that of loop/program.h, so the result is
// the interpreter's bit for bit, but for functions that math.h computes in its own way.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "runtime/abi.h"
#include "tenon/compile/kernel.h"
#include "tenon/loop/param.h"
#include "tenon/loop/program.h"

namespace tenon::compile {

/// Status bits of kernels made from stages.
constexpr int index_out_of_range = TENON_KERNEL_INDEX, division_by_zero = TENON_KERNEL_ARITHMETIC;

using loop::evaluate;
using loop::Param;

struct StageKernel {
  Kernel kernel;
  std::vector<loop::BufferId> buffers;  // what the kernel knows as buffer 0, 1, ...
  std::vector<Param> params;
  SymInt extent = 0;    // of the outermost loop: a call with [0, extent) does all of the stage
  bool serial = false;  // that call must be one: places may coincide, contributions are taken in index order
  /// What sizes and strides must satisfy so that no access leaves its buffer; what is certain is not listed.
  std::vector<SymInt> conditions;
};

struct KernelOptions {
  std::string name = "stage";
  /// Sizes and strides that are numbers become parameters too (but 0 and 1), as symbolic ones always do.
  bool numbers_are_params = false;
};

/// Stages that one kernel computes, all of them for one row after another, so that what one leaves the next finds in
/// the first cache. The rows are the same loops of all of them: the first `rows` of each domain that have not one
/// iteration. With none the stages run one after the other.
struct RowStages {
  std::vector<const loop::Stage*> stages;
  size_t rows = 0;
  std::vector<loop::BufferId> locals;  // used by these stages alone: a row of each is all that is kept
};
/// No stage needs of another what belongs to other rows, and each may be computed row by row.
bool row_by_row(const loop::Program& program, const RowStages& stages);
StageKernel make_kernel(const loop::Program& program, const RowStages& stages, const KernelOptions& options = {});

/// A stage without reductions as the epilogue of an anchor (tenon_epilogue of runtime/abi.h): its [lo, hi) are rows of
/// the anchor's result, and the columns of a block are handed in.
struct BlockStage {
  const loop::Stage* stage = nullptr;
  std::vector<size_t> rows;  // the stage's loops that a row's number is made of, outermost first
  size_t columns = 0;        // its loop over the columns
  bool whole_rows = false;   // a block has all columns
  /// What it stores element by element where the result lies in its own buffer: the anchor may write there.
  loop::BufferId in_place = loop::no_buffer;
};
/// The stage reads an anchor's result, whose dimension `channel` is that of the columns, each element once, and all it
/// needs besides can be read in blocks, too. Else nothing.
std::optional<BlockStage> block_stage(const loop::Program& program, const loop::Stage& stage,
                                      const loop::Operand& result, size_t channel);
StageKernel make_kernel(const loop::Program& program, const BlockStage& block, const KernelOptions& options = {});

/// Unsupported names what Kernel IR has not: complex and 8-bit floating tensors. Sizes that cannot belong together are
/// an Error.
StageKernel make_kernel(const loop::Program& program, const loop::Stage& stage, const KernelOptions& options = {});

}  // namespace tenon::compile

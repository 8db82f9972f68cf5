// One stage of the executed program as Kernel IR: the order of reductions is that of loop/program.h, so the result is
// the interpreter's bit for bit, but for functions that math.h computes in its own way.
#pragma once
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

/// Unsupported names what Kernel IR has not: complex and 8-bit floating tensors. Sizes that cannot belong together are
/// an Error.
StageKernel make_kernel(const loop::Program& program, const loop::Stage& stage, const KernelOptions& options = {});

}  // namespace tenon::compile

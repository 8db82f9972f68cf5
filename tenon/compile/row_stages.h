// Stages that share their rows: what each leaves for the others, and which of it one row is enough of. For
// make_kernel.cpp only.
#pragma once
#include "tenon/compile/make_kernel.h"
#include "tenon/compile/stage_loops.h"

namespace tenon::compile {

/// A buffer of which one row is kept.
struct RowLocal {
  loop::BufferId buffer = loop::no_buffer;
  uint64_t count = 0;  // elements of a row
};

struct AnalyzedRows {
  std::vector<StageLoops> loops;  // per stage; places in locals are those in the row
  std::vector<RowLocal> locals;   // those whose rows have a size that is known, and not too large
};
AnalyzedRows analyze(const loop::Program& program, const RowStages& stages);

}  // namespace tenon::compile

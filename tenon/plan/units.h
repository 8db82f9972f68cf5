// Which steps become one kernel: stages over the same rows, and stages so small that calling them costs more than they
// do.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "tenon/compile/make_kernel.h"
#include "tenon/loop/program.h"

namespace tenon::plan {

/// Steps of one list that are executed at once, in this order. Several are stages that compile::RowStages can hold, or
/// an anchor and a stage that is its epilogue.
struct Unit {
  std::vector<size_t> steps;
  size_t origin = 0;  // the step that it is named after: the one that may fail, if any
  size_t rows = 0;
  std::optional<compile::BlockStage> epilogue;
  std::vector<loop::BufferId> locals;      // memory of the session that only these steps use
  std::set<loop::BufferId> reads, writes;  // roots
  bool fails = false, updates = false;     // it may fail; it writes inputs or state
  bool may_be_passed = true;               // units behind it may be executed before it
};

/// Every step is in one unit; units can be executed in the order given, which need not be that of the steps.
std::vector<Unit> make_units(const loop::Program& program, const std::vector<loop::Step>& steps);

/// Units that call the same functions and do not depend on each other are executed together: threads find more to
/// share, and meet less often. `calls` says what each unit calls; empty: it stays alone. In order of execution.
std::vector<std::vector<size_t>> make_batches(const loop::Program& program, const std::vector<Unit>& units,
                                              const std::vector<std::string>& calls);

}  // namespace tenon::plan

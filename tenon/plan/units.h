// Which steps become one kernel: stages over the same rows, and stages so small that calling them costs more than they do.
#pragma once
#include <vector>

#include "tenon/loop/program.h"

namespace tenon::plan {

/// Steps of one list that are executed at once, in this order. Several are stages that compile::RowStages can hold.
struct Unit {
  std::vector<size_t> steps;
  size_t origin = 0;  // the step that it is named after: the one that may fail, if any
  size_t rows = 0;
  std::vector<loop::BufferId> locals;
};

/// Every step is in one unit; units can be executed in the order given, which need not be that of the steps.
std::vector<Unit> make_units(const loop::Program& program, const std::vector<loop::Step>& steps);

}  // namespace tenon::plan

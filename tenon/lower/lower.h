// From a pure graph to the program that is executed, through the rules of its operators.
#pragma once
#include "tenon/graph/convention.h"
#include "tenon/loop/program.h"

namespace tenon {

/// One buffer per value; a view is a buffer within its base's. An operator becomes its stages, an anchor, or a call of
/// its host function; composites must have been decomposed. Sizes that depend on data are bound behind the call that
/// makes them, assertions and the ranges of such sizes are checks. An output that is a view, an input or another output
/// is copied; new contents of inputs and state are stored last, behind every check.
loop::Program lower(const GraphBody& graph, const CallingConvention& convention);

}  // namespace tenon

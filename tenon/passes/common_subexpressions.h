// Equal calls made once.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// Gives equal pure calls one node: same operator, same arguments. Of a call in the forward and one in the backward the
/// forward's stays. Random draws, assertions, control flow and writes are left alone.
/// Run before deciding what the backward keeps: two copies of a value would both be kept.
Graph merge_common_subexpressions(const GraphBody& graph);

}  // namespace tenon

// From a graph to stages and anchors, through the rules of its operators.
#pragma once
#include "tenon/graph/graph.h"
#include "tenon/loop/program.h"

namespace tenon {

/// The stages of a functional graph, in order, over one buffer per value. A view is a buffer that lies within its
/// base's. What stages cannot do is a call of the operator itself; assertions are left out.
loop::Program lower(const GraphBody& graph);

}  // namespace tenon

// Forward mode over graphs.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// A functional graph and how its outputs move when its first `moving` inputs do. The inputs get, behind their own, one
/// tangent for each that moves; the outputs, behind their own, one tangent each, or none where nothing moves it.
Graph push_forward(const GraphBody& graph, size_t moving);

}  // namespace tenon

// Composites replaced by their meaning.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// Every composite that has no stages of its own becomes the operators it stands for, to the last. Run before lower.
Graph decompose(const GraphBody& graph);

}  // namespace tenon

// Sizes in arguments, from expressions to values.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// The inverse of what normalize does to numbers: an argument or output that is an expression of symbols (2*s77 + 1)
/// becomes a value that nodes compute from the sizes of tensors, because files can say it in no other way. Each is
/// computed once. Output i of the result is output i of the graph; a signature that speaks of an expression must take
/// its value from there.
Graph spell_sizes(const GraphBody& graph, const OpTable& ops);

}  // namespace tenon

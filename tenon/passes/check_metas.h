// What a file says of results against what the operators give.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// Asks the rule of each node for the metas of its results and compares dtypes, ranks and the sizes that are numbers on
/// both sides. Throws Error naming the node where they differ or where the arguments do not go together. Operators
/// without a rule are taken at their word, and so are calls that a rule does not support: a program may be shown
/// without being run.
void check_metas(const GraphBody& graph);

}  // namespace tenon

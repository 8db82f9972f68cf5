// What a file says of results against what the operators give.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// Asks the rule of each node for the metas of its results and compares dtypes, ranks and the sizes that are numbers on
/// both sides. Throws Error naming the node where they differ or where the arguments do not go together. Operators
/// without a rule are taken at their word, and so are calls that a rule does not support: a program may be shown
/// without being run.
void check_metas(const GraphBody& graph);

/// Replaces descriptions that contradict their operators by what the operators give, where that has constant sizes.
/// Files of PyTorch 2.8 and earlier need it: some of their descriptions are wrong (results of lstm, what was traced
/// under autocast), and PyTorch does not look at them.
void correct_metas(GraphBody& graph);

}  // namespace tenon

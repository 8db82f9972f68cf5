// What a file says of results against what the operators give.
#pragma once
#include <map>
#include <string>

#include "tenon/graph/graph.h"

namespace tenon {

/// Asks the rule of each node, in regions too, for its results and compares: whether there is a result at all, dtypes,
/// ranks, sizes, and the numbers that are computed from sizes. Symbolic ones are compared where both sides are certain,
/// and by their values at `hints` (what symbols were for the example inputs, where every condition of the program
/// holds). Within autocast regions the results say what dtype arguments are converted to. Throws Error naming the node
/// where something differs or where the arguments do not go together. Operators without a rule are taken at their word,
/// and so are calls that a rule does not support: a program may be shown without being run.
void check_metas(const GraphBody& graph, const std::map<std::string, int64_t>& hints);

}  // namespace tenon

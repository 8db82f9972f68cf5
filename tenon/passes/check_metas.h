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

/// Replaces descriptions that contradict their operators by what the operators give, where that has constant sizes.
/// Files of PyTorch 2.8 and earlier need it: some of their descriptions are wrong (results of lstm, what was traced
/// under autocast), and PyTorch does not look at them.
void correct_metas(GraphBody& graph);
/// The same for results that nobody reads, and for those alone: what PyTorch says of some that were not asked for (the
/// inverse of unique_consecutive) is not what they are.
void correct_unread_metas(GraphBody& graph);
/// The same for operators that PyTorch is known to misdescribe, and for what is made of their results.
void correct_misdescribed(GraphBody& graph);

}  // namespace tenon

// Regions in which PyTorch converts the arguments of some operators before it calls them.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// Whether autocast is on in the subgraphs of a node, given whether it is around it.
bool autocast_within(const Node& region, bool around);

/// The conversions that autocast makes before a call whose arguments are values of `graph`. Which operators are
/// converted to what is read off the file: where a result is described in another floating dtype than the operator
/// gives or in a wider one than it takes, its floating arguments, doubles aside, are converted to that. Changes
/// node.args, appends the conversions.
void convert_for_autocast(GraphBody& graph, Node& node);

}  // namespace tenon

// Replaying a graph through operators: a node is called again, and what comes back takes the place of its results.
#pragma once
#include "tenon/trace/trace.h"

namespace tenon {

/// Calls a node of the graph being replayed on `dispatcher`, whose calls end in `tracer`, under the node's flags. The
/// replay's map then leads from the node's results to the values that were made.
void retrace(const Node& node, Replay& replay, Tracer& tracer, Dispatcher& dispatcher);

}  // namespace tenon

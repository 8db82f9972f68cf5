// A graph traced anew in another dialect. For dialect/ only.
#pragma once
#include "tenon/dialect/tracer.h"

namespace tenon::dialect {

/// A graph as PyTorch would have traced it, and where the values of the old one went.
struct Retraced {
  Graph graph;
  std::vector<Value> map;  // old value -> new; none: a number, or gone
  std::vector<size_t>
      written;  // positions of the inputs that the graph wrote to, in order: outputs stand first for these
};

/// Whether the graph has regions in which arguments are converted, or batches: normalize writes these out.
bool is_normalized_first(const GraphBody& graph);
Retraced retrace_graph(const GraphBody& from, const Policy& policy);

}  // namespace tenon::dialect

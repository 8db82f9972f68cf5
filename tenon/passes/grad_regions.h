// Grad mode as regions: what files say, in place of the flags that normalize made of it.
#pragma once
#include "tenon/graph/graph.h"

namespace tenon {

/// The inverse of what normalize does to grad mode: every maximal run of nodes with gradients off becomes a region, a
/// graph of its own that takes what the run uses and returns what is used of it later. Normalizing the result gives the
/// flags back.
Graph make_grad_regions(const GraphBody& graph);

}  // namespace tenon

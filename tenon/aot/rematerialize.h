// What the backward keeps of the forward, and what it computes again.
#pragma once
#include "tenon/aot/joint.h"

namespace tenon {

struct RematerializeOptions {
  /// Between 0 and 1. 1: what costs nothing but reading is computed again, so that no step is slower for it. 0: nothing
  /// is kept but the inputs. Between: that share of the bytes that 1 keeps on top of the inputs; of what is costly as
  /// much is kept as fits, the costliest for its bytes first.
  double memory_budget = 1;
  bool recompute_views = true;  // a view is never kept, but what it is a view of
  bool operator==(const RematerializeOptions&) const = default;
};

/// The same results from a graph whose backward computes again what is cheaper to compute than to keep. What is kept is
/// a minimum cut between the forward and the backward, weighed by bytes; products, random draws, small results of
/// reductions and what the backward must have in memory anyway are kept. What is computed again stands right before its
/// first use; what the backward derives from the forward alone (a mask of where an activation is positive) moves into
/// the forward where it is smaller. Bits do not change: random draws are functions of their keys.
/// `seeds` are values of the backward that are given (cotangents); where there are none, the backward starts with its
/// first node. `inputs` says what the inputs of the graph mean: state costs nothing to keep.
/// An Error where the budget is not between 0 and 1.
Graph rematerialize(const GraphBody& graph, const CallingConvention& convention,
                    const RematerializeOptions& options = {});
JointProgram rematerialize(const JointProgram& joint, const RematerializeOptions& options = {});

}  // namespace tenon

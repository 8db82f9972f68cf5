// What vmap leaves in a graph: entries and exits of a batch, and between them nodes whose tensors are those of one
// sample. Such a stretch is a graph that is mapped over the samples; normalize makes it one. What jvp leaves is such a
// stretch too, of tensors that have a direction.
#pragma once
#include <unordered_set>

#include "tenon/graph/graph.h"

namespace tenon {

/// One stretch, in terms of the graph it was found in.
struct Batch {
  std::vector<const Node*> entries, nodes, exits;
  std::vector<const Node*> passed;  // of directions: what gives on what an exit gave
  /// The graph of one sample: its inputs are what entries give and then `captured`, its outputs what exits take of what
  /// changes from sample to sample.
  GraphBody sample(const GraphBody& from, std::vector<Value>& captured) const;
  bool varies(const Arg& arg) const;  // from sample to sample

  std::unordered_set<ValueId> varying;
};

/// Reads the nodes of one graph in order and keeps those of a batch back. What does not depend on the sample stays
/// where it is: it is computed before the batch.
class BatchReader {
 public:
  enum class Of : uint8_t { samples, directions };
  explicit BatchReader(Of what) : what_(what) {}
  bool ends_before(const Node& node) const;  // the batch being read: then take it, before the node is read
  bool takes(const Node& node);              // it belongs to a batch, or only marks where one is
  bool reading() const { return !batch_.entries.empty(); }
  Batch take();

 private:
  bool is_entry(const Op& op) const;
  bool is_exit(const Op& op) const;
  bool is_mark(const Op& op) const;
  int64_t level_of(const Node& node) const;

  Of what_;
  Batch batch_;
  std::unordered_set<ValueId> left_;  // what exits gave
};

}  // namespace tenon

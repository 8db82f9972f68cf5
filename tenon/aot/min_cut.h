// The cheapest way to separate a source from a sink.
#pragma once
#include <cstddef>
#include <limits>
#include <vector>

namespace tenon {

/// A network of directed edges with capacities. By Dinic's method: shortest paths are filled until none is left.
class FlowNetwork {
 public:
  static constexpr double unlimited = std::numeric_limits<double>::infinity();

  explicit FlowNetwork(size_t vertices) : edges_of_(vertices) {}
  size_t add_vertex() {
    edges_of_.emplace_back();
    return edges_of_.size() - 1;
  }
  void add_edge(size_t from, size_t to, double capacity);

  struct Cut {
    double capacity = 0;  // of the edges that are cut; unlimited where nothing separates the two
    std::vector<bool>
        on_sink_side;  // by vertex: what still reaches the sink, so that the cut lies as near to it as any
  };
  Cut minimum_cut(size_t source, size_t sink);

 private:
  struct Edge {
    size_t to;
    double left;  // how much more it takes; its reverse is the edge of the other parity
  };
  bool find_levels(size_t source, size_t sink);
  double push(size_t source, size_t sink);

  std::vector<Edge> edges_;
  std::vector<std::vector<size_t>> edges_of_;
  std::vector<size_t> level_, next_;
};

}  // namespace tenon

#include "tenon/aot/min_cut.h"

#include <algorithm>

namespace tenon {

void FlowNetwork::add_edge(size_t from, size_t to, double capacity) {
  edges_of_[from].push_back(edges_.size());
  edges_.push_back({to, capacity});
  edges_of_[to].push_back(edges_.size());
  edges_.push_back({from, 0});
}

bool FlowNetwork::find_levels(size_t source, size_t sink) {
  constexpr size_t unseen = ~size_t{0};
  level_.assign(edges_of_.size(), unseen);
  std::vector<size_t> queue = {source};
  level_[source] = 0;
  for (size_t i = 0; i < queue.size(); ++i)
    for (size_t e : edges_of_[queue[i]])
      if (edges_[e].left > 0 && level_[edges_[e].to] == unseen) {
        level_[edges_[e].to] = level_[queue[i]] + 1;
        queue.push_back(edges_[e].to);
      }
  return level_[sink] != unseen;
}

// Along one path of the levels, without recursion: programs are deep. 0 where there is none left.
double FlowNetwork::push(size_t source, size_t sink) {
  std::vector<size_t> path;  // edges
  size_t at = source;
  while (at != sink) {
    bool went = false;
    for (size_t& i = next_[at]; i < edges_of_[at].size(); ++i) {
      const size_t e = edges_of_[at][i];
      if (edges_[e].left <= 0 || level_[edges_[e].to] != level_[at] + 1) continue;
      path.push_back(e);
      at = edges_[e].to;
      went = true;
      break;
    }
    if (went) continue;
    if (path.empty()) return 0;
    at = edges_[path.back() ^ 1].to;
    path.pop_back();
    ++next_[at];
  }
  double least = unlimited;
  for (size_t e : path) least = std::min(least, edges_[e].left);
  if (least == unlimited) return least;
  for (size_t e : path) {
    edges_[e].left -= least;
    edges_[e ^ 1].left += least;
  }
  return least;
}

FlowNetwork::Cut FlowNetwork::minimum_cut(size_t source, size_t sink) {
  Cut cut;
  while (cut.capacity < unlimited && find_levels(source, sink)) {
    next_.assign(edges_of_.size(), 0);
    while (double pushed = push(source, sink)) {
      cut.capacity += pushed;
      if (pushed == unlimited) break;
    }
  }
  cut.on_sink_side.assign(edges_of_.size(), false);
  cut.on_sink_side[sink] = true;
  std::vector<size_t> queue = {sink};
  for (size_t i = 0; i < queue.size(); ++i)
    for (size_t e : edges_of_[queue[i]])
      if (size_t from = edges_[e].to; edges_[e ^ 1].left > 0 && !cut.on_sink_side[from]) {
        cut.on_sink_side[from] = true;
        queue.push_back(from);
      }
  return cut;
}

}  // namespace tenon

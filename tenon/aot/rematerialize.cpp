#include "tenon/aot/rematerialize.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <set>
#include <unordered_set>

#include "tenon/aot/min_cut.h"
#include "tenon/passes/common_subexpressions.h"
#include "tenon/sym/evaluate.h"

namespace tenon {
namespace {

constexpr size_t far = 1'000'000'000;   // from the backward: no path leads there
constexpr size_t longest_chain = 100;   // of fusible nodes that are computed again
constexpr double grows_by_step = 1.1;   // of two values of equal size the one nearer to the backward is kept
constexpr double small_result = 4;      // a reduction that gives so many times less than it reads is kept
constexpr double cost_of_a_copy = 4;    // keeping an input that the program overwrites
constexpr double points_a_product = 8;  // products that take as long as reading or writing one element
constexpr int64_t unknown_size = 64;    // of what only the run tells

/// Which reasons to keep a value count.
struct Bans {
  bool used_far_apart = true, long_chains = true, materialized_in_backward = true, not_cheap = true;
};

class Rematerializer {
 public:
  Rematerializer(const GraphBody& graph, const CallingConvention& convention, const RematerializeOptions& options)
      : graph_(graph), convention_(convention), options_(options) {
    const double m = options.memory_budget;
    require(m >= 0 && m <= 1, "memory budget: expected a number from 0 to 1, got ", m);
    find_users();
    find_sides();
    find_distances();
  }

  bool has_backward() const {
    return std::any_of(in_backward_.begin(), in_backward_.end(), [](bool b) { return b; });
  }

  Graph run() { return rebuilt(saved_values()); }

 private:
  using Saved = std::vector<bool>;  // by value

  // ---- What there is

  void find_users() {
    users_.resize(graph_.values.size());
    inputs_of_.resize(graph_.values.size(), no_id);
    for (NodeId i = 0; i < graph_.nodes.size(); ++i)
      for_each_input(graph_.nodes[i], [&](Value v) {
        if (users_[v.id].empty() || users_[v.id].back() != i) users_[v.id].push_back(i);
      });
    for (size_t i = 0; i < graph_.inputs.size(); ++i)
      if (const Value* v = graph_.inputs[i].get<Value>(); v && *v) inputs_of_[v->id] = static_cast<uint32_t>(i);
  }

  bool is_tangent(ValueId v) const {
    return inputs_of_[v] != no_id && std::holds_alternative<input::Tangent>(convention_.inputs[inputs_of_[v]]);
  }

  // What needs a cotangent belongs to the backward, what results of the forward need to the forward; the rest is free.
  void find_sides() {
    in_backward_.resize(graph_.nodes.size());
    in_forward_.resize(graph_.nodes.size());
    bool given = false;
    for (ValueId v = 0; v < graph_.values.size(); ++v) given = given || is_tangent(v);
    bool started = given;
    for (NodeId i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!started && node.phase == Phase::backward) in_backward_[i] = started = true;
      if (node.phase == Phase::update) in_backward_[i] = true;
      for_each_input(node, [&](Value v) {
        const NodeId from = graph_.info(v).producer;
        if (is_tangent(v.id) || (from != no_id && in_backward_[from])) in_backward_[i] = true;
      });
    }
    updated_.resize(graph_.values.size());
    std::vector<NodeId> open;
    auto need = [&](Value v) {
      const NodeId from = v ? graph_.info(v).producer : no_id;
      if (from == no_id || in_forward_[from] || in_backward_[from]) return;
      in_forward_[from] = true;
      open.push_back(from);
    };
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      if (is_late(i)) continue;
      for_each_tensor(graph_.outputs[i], need);
      if (auto* u = std::get_if<output::Updated>(&convention_.outputs[i]))
        if (const Value* v = graph_.inputs[u->input].get<Value>()) updated_[v->id] = true;
    }
    for (NodeId i = 0; i < graph_.nodes.size(); ++i)
      if (graph_.nodes[i].phase == Phase::forward && !in_backward_[i] && must_stay(graph_.nodes[i])) {
        in_forward_[i] = true;
        open.push_back(i);
      }
    while (!open.empty()) {
      const NodeId i = open.back();
      open.pop_back();
      for_each_input(graph_.nodes[i], need);
    }
  }

  /// An output that the backward gives, or what follows it.
  bool is_late(size_t output) const {
    if (std::holds_alternative<output::Gradient>(convention_.outputs[output])) return true;
    bool late = false;
    for_each_tensor(graph_.outputs[output], [&](Value v) {
      const NodeId from = v ? graph_.info(v).producer : no_id;
      late = late || (from != no_id && in_backward_[from]);
    });
    return late;
  }

  void find_distances() {
    distance_.assign(graph_.nodes.size(), 0);
    for (size_t i = graph_.nodes.size(); i-- > 0;) {
      if (!in_forward_[i]) continue;
      distance_[i] = far;
      for_each_result(graph_.nodes[i], [&](Value v) { distance_[i] = std::min(distance_[i], distance_of(v.id)); });
    }
  }
  size_t distance_of(ValueId v) const {
    size_t out = far;
    for (NodeId user : users_[v]) out = std::min(out, distance_[user] + 1);
    return std::min(out, far);
  }

  // ---- What a node is

  bool is_view(const Node& node) const { return node.op->kind == OpKind::view; }
  /// Computing it again is reading its operands.
  bool is_cheap(const Node& node) const {
    if (node.op->traits.random) return false;
    if (node.op->kind == OpKind::pointwise || node.op->kind == OpKind::view) return true;
    bool reads = false;
    for_each_input(node, [&](Value) { reads = true; });
    return !reads && node.op->kind == OpKind::general && !node.op->stays();  // a constant
  }
  /// Reads its operands and writes its results element by element, so that neighbours of it need no memory.
  bool is_fusible(const Node& node) const {
    if (is_cheap(node) || node.op->traits.random) return true;
    return node.op->kind == OpKind::reduction && bytes_out(node) * small_result < bytes_in(node);
  }
  bool fuses(NodeId user, ValueId v) const {
    const NodeId from = graph_.values[v].producer;
    return is_fusible(graph_.nodes[user]) && (from == no_id || is_fusible(graph_.nodes[from]));
  }
  /// Once is all that is allowed: control flow, checks, and whatever makes sizes or numbers known.
  bool must_stay(const Node& node) const {
    const Traits& t = node.op->traits;
    if (node.op->stays() || t.control != Control::none) return true;
    bool out = false, any = false;
    for (const Arg& arg : node.args) out = out || arg.is<Subgraph>();
    for_each_result(node, [&](Value v) {
      any = true;
      out = out || graph_.info(v).type != ValueType::tensor;
      for (SymInt e : graph_.info(v).meta.sizes)
        for (SymInt s : sym::symbols_of(e)) out = out || is_made_by(node, s);
    });
    return out || !any;
  }
  bool is_made_by(const Node& node, SymInt symbol) const {
    bool known = false;
    for_each_input(node, [&](Value v) {
      for (SymInt e : graph_.info(v).meta.sizes)
        for (SymInt s : sym::symbols_of(e)) known = known || s == symbol;
    });
    for (const Arg& arg : node.args) {
      if (auto* e = arg.get<SymInt>())
        for (SymInt s : sym::symbols_of(*e)) known = known || s == symbol;
      if (auto* sizes = arg.get<Sizes>())
        for (SymInt e : *sizes)
          for (SymInt s : sym::symbols_of(e)) known = known || s == symbol;
    }
    return !known;
  }

  double elements(ValueId v) const {
    double n = 1;
    for (SymInt e : graph_.values[v].meta.sizes) n *= static_cast<double>(e.is_int() ? e.as_int() : unknown_size);
    return n;
  }
  double bytes(ValueId v) const {
    if (graph_.values[v].type != ValueType::tensor) return 0;
    return elements(v) * static_cast<double>(item_size(graph_.values[v].meta.dtype));
  }
  double bytes_in(const Node& node) const {
    double n = 0;
    for_each_input(node, [&](Value v) { n += bytes(v.id); });
    return n;
  }
  double bytes_out(const Node& node) const {
    double n = 0;
    for_each_result(node, [&](Value v) { n += bytes(v.id); });
    return n;
  }
  /// How long computing it again takes, in products. Of a product of matrices m k, k n to m n the root of m k k n m n.
  double cost(const Node& node) const {
    double sum = 0, product = 1;
    size_t operands = 0;
    for_each_input(node, [&](Value v) {
      sum += elements(v.id);
      if (graph_.info(v).meta.rank() > 1) product *= elements(v.id), ++operands;
    });
    for_each_result(node, [&](Value v) { sum += elements(v.id); });
    double out = points_a_product * sum;
    if (node.op->kind == OpKind::general && operands == 2)
      for_each_result(node, [&](Value v) { out = std::max(out, std::sqrt(product * elements(v.id))); });
    return std::max(out, 1.0);
  }

  // ---- The cut

  /// A value that steps outside the backward's own loops read there has to lie in memory, computed again or not.
  bool is_materialized_in_backward(const Node& node) const {
    if (is_view(node)) return false;
    std::vector<ValueId> open;
    std::unordered_set<ValueId> seen;
    auto add = [&](Value v) {
      if (seen.insert(v.id).second) open.push_back(v.id);
    };
    for_each_result(node, add);
    while (!open.empty()) {
      const ValueId v = open.back();
      open.pop_back();
      for (NodeId user : users_[v]) {
        if (!in_forward_[user] && !fuses(user, v)) return true;
        if (is_view(graph_.nodes[user])) for_each_result(graph_.nodes[user], add);
      }
    }
    return false;
  }

  bool should_keep(const Node& node, const Bans& bans) const {
    if (is_view(node)) return false;
    if (bans.not_cheap) {
      if (!is_cheap(node)) return true;
    } else if (node.op->traits.random || node.op->kind == OpKind::general || node.op->kind == OpKind::composite) {
      return !is_cheap(node);
    }
    if (bans.materialized_in_backward && is_materialized_in_backward(node)) return true;
    return node.op->kind == OpKind::reduction && bytes_out(node) * small_result < bytes_in(node);
  }

  double weight(ValueId v) const {
    const NodeId from = graph_.values[v].producer;
    if (from == no_id && !updated_[v] && is_state(convention_.inputs[inputs_of_[v]])) return 0;
    if (from != no_id && options_.recompute_views && is_view(graph_.nodes[from])) return FlowNetwork::unlimited;
    const size_t distance = std::clamp<size_t>(distance_of(v), 1, 100);
    double out = std::floor(bytes(v) * std::pow(grows_by_step, static_cast<double>(distance)));
    const bool materialized =
        from == no_id || !std::all_of(users_[v].begin(), users_[v].end(), [&](NodeId user) { return fuses(user, v); });
    if (from == no_id && updated_[v]) out *= cost_of_a_copy;
    return materialized ? out : 2 * out;
  }

  struct Solution {
    Saved saved;
    std::vector<NodeId> kept;  // nodes that must not be computed again
  };

  Solution solve(const Bans& bans, const std::set<NodeId>& allowed = {}) const {
    Solution out;
    std::vector<bool> kept(graph_.nodes.size());
    auto keep = [&](NodeId i) {
      if (kept[i] || allowed.contains(i) || is_view(graph_.nodes[i])) return;
      kept[i] = true;
      out.kept.push_back(i);
    };
    for (NodeId i = 0; i < graph_.nodes.size(); ++i)
      if (in_forward_[i] && (must_stay(graph_.nodes[i]) || should_keep(graph_.nodes[i], bans))) keep(i);
    if (bans.used_far_apart) keep_what_is_used_far_apart(kept, keep);
    if (bans.long_chains) keep_long_chains(kept, keep);

    const size_t source = 0, sink = 1, nodes = 2, values = nodes + graph_.nodes.size();
    FlowNetwork network(values + graph_.values.size());
    for (NodeId i = 0; i < graph_.nodes.size(); ++i) {
      if (in_backward_[i]) {
        network.add_edge(nodes + i, sink, FlowNetwork::unlimited);
        continue;
      }
      if (kept[i]) network.add_edge(source, nodes + i, FlowNetwork::unlimited);
      for_each_result(graph_.nodes[i], [&](Value v) {
        if (graph_.info(v).type == ValueType::tensor) network.add_edge(nodes + i, values + v.id, weight(v.id));
      });
    }
    for (ValueId v = 0; v < graph_.values.size(); ++v) {
      if (graph_.values[v].type != ValueType::tensor || is_tangent(v)) continue;
      const NodeId from = graph_.values[v].producer;
      if (from == no_id && inputs_of_[v] == no_id) continue;
      if (from == no_id) network.add_edge(source, values + v, weight(v));
      else if (in_backward_[from]) continue;
      for (NodeId user : users_[v]) network.add_edge(values + v, nodes + user, FlowNetwork::unlimited);
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i)
      if (is_late(i))
        for_each_tensor(graph_.outputs[i], [&](Value v) {
          if (v && !is_tangent(v.id)) network.add_edge(values + v.id, sink, FlowNetwork::unlimited);
        });
    const FlowNetwork::Cut cut = network.minimum_cut(source, sink);
    expect(cut.capacity < FlowNetwork::unlimited, "what the backward must have can neither be kept nor computed");
    out.saved.assign(graph_.values.size(), false);
    for (ValueId v = 0; v < graph_.values.size(); ++v) {
      const NodeId from = graph_.values[v].producer;
      const bool made_before = from == no_id ? inputs_of_[v] != no_id && !is_tangent(v)
                                             : !in_backward_[from] && !cut.on_sink_side[nodes + from];
      out.saved[v] = made_before && cut.on_sink_side[values + v];
    }
    return out;
  }

  // A value whose readers stand far apart, with a step between that nothing fuses into: readers behind it are kept, or
  // the value would be computed or read once more for each of them.
  template <class Keep>
  void keep_what_is_used_far_apart(const std::vector<bool>& kept, Keep&& keep) const {
    auto readers_in_forward = [&](ValueId v) {
      std::vector<NodeId> out;
      for (NodeId user : users_[v])
        if (in_forward_[user]) out.push_back(user);
      return out;
    };
    for (ValueId v = 0; v < graph_.values.size(); ++v) {
      const NodeId from = graph_.values[v].producer;
      if (from == no_id || !in_forward_[from]) continue;
      const std::vector<NodeId> readers = readers_in_forward(v);
      if (readers.size() < 2) continue;
      const NodeId last = readers.back();
      std::priority_queue<std::pair<NodeId, bool>, std::vector<std::pair<NodeId, bool>>, std::greater<>> open;
      std::set<std::pair<NodeId, bool>> seen;
      for (NodeId r : readers) open.push({r, true});
      NodeId first = last;  // the first step that does not fuse
      while (!open.empty()) {
        auto [node, fusible] = open.top();
        open.pop();
        if (!fusible) {
          first = node;
          break;
        }
        for_each_result(graph_.nodes[node], [&](Value made) {
          for (NodeId user : users_[made.id])
            if (in_forward_[user] && user <= last)
              if (std::pair next(user, fuses(user, made.id)); seen.insert(next).second) open.push(next);
        });
      }
      for (NodeId r : readers)
        if (r > first && fuses(r, v) && !kept[r]) keep(r);
    }
  }

  // Sums of residuals lead from the first layer to the last: a chain is cut where it gets long.
  template <class Keep>
  void keep_long_chains(const std::vector<bool>& kept, Keep&& keep) const {
    std::vector<bool> visited(graph_.nodes.size());
    for (NodeId start = 0; start < graph_.nodes.size(); ++start) {
      if (!in_forward_[start]) continue;
      std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> open;
      open.push(start);
      while (!open.empty()) {
        const NodeId node = open.top();
        open.pop();
        if (visited[node]) continue;
        visited[node] = true;
        if (node > start + longest_chain && open.empty()) {
          keep(node);
          break;
        }
        for_each_result(graph_.nodes[node], [&](Value v) {
          for (NodeId user : users_[v.id])
            if (in_forward_[user] && fuses(user, v.id) && !kept[user]) open.push(user);
        });
      }
    }
  }

  // ---- The budget

  double kept_bytes(const Saved& saved) const {
    double n = 0;
    for (ValueId v = 0; v < saved.size(); ++v)
      if (saved[v] && graph_.values[v].producer != no_id) n += bytes(v);
    return n;
  }

  Saved saved_values() const {
    if (options_.memory_budget == 0) return only_inputs();
    Bans bans;
    Solution fast = solve(bans);
    const double most = kept_bytes(fast.saved), budget = options_.memory_budget * most;
    if (options_.memory_budget == 1 || most == 0) return fast.saved;
    bans.used_far_apart = bans.long_chains = bans.materialized_in_backward = false;
    if (Solution s = solve(bans); kept_bytes(s.saved) <= budget) return s.saved;
    bans.not_cheap = false;
    Solution small = solve(bans);
    if (kept_bytes(small.saved) <= budget) return small.saved;
    std::vector<NodeId> costly;
    for (NodeId i : small.kept)
      if (distance_[i] < far && !must_stay(graph_.nodes[i])) costly.push_back(i);
    // What is kept beside the chosen ones is not known before the cut, so the share for them shrinks until all fits.
    for (double share = budget; share > budget / 64; share *= 0.8) {
      std::set<NodeId> again = not_worth_keeping(costly, share);
      if (Solution s = solve(bans, again); kept_bytes(s.saved) <= budget) return s.saved;
    }
    return only_inputs();
  }

  Saved only_inputs() const {
    Saved out(graph_.values.size());
    for (ValueId v = 0; v < graph_.values.size(); ++v) {
      const NodeId from = graph_.values[v].producer;
      if (from == no_id) out[v] = inputs_of_[v] != no_id && !is_tangent(v);
      else out[v] = !in_backward_[from] && graph_.nodes[from].phase == Phase::forward && must_stay(graph_.nodes[from]);
    }
    return out;
  }

  /// Of nodes that cost time, those to compute again, so that the others fit and save most: a knapsack, in units of
  /// bytes coarse enough for a table.
  std::set<NodeId> not_worth_keeping(const std::vector<NodeId>& nodes, double most_bytes) const {
    constexpr size_t units = 4096;
    std::vector<double> best(units + 1);
    std::vector<std::vector<bool>> taken(nodes.size(), std::vector<bool>(units + 1));
    std::vector<size_t> size(nodes.size());
    for (size_t k = 0; k < nodes.size(); ++k) {
      const Node& node = graph_.nodes[nodes[k]];
      const double share = std::ceil(bytes_out(node) / most_bytes * units);
      size[k] = share > units ? units + 1 : static_cast<size_t>(share);
      const double worth = cost(node);
      for (size_t room = units + 1; room-- > size[k];)
        if (double with = best[room - size[k]] + worth; with > best[room]) {
          best[room] = with;
          taken[k][room] = true;
        }
    }
    std::set<NodeId> out;
    size_t room = units;
    for (size_t k = nodes.size(); k-- > 0;) {
      if (size[k] <= room && taken[k][room]) room -= size[k];
      else out.insert(nodes[k]);
    }
    return out;
  }

  // ---- The new graph

  Graph rebuilt(const Saved& saved) const {
    // The forward: its own nodes, and what is kept of the rest, each as soon as its operands are there.
    std::vector<bool> early(graph_.nodes.size());
    std::vector<NodeId> open;
    auto need = [&](Value v) {
      const NodeId from = v ? graph_.info(v).producer : no_id;
      if (from == no_id || early[from] || in_backward_[from]) return;
      early[from] = true;
      open.push_back(from);
    };
    for (NodeId i = 0; i < graph_.nodes.size(); ++i)
      if (in_forward_[i]) early[i] = true;
    for (ValueId v = 0; v < saved.size(); ++v)
      if (saved[v]) need(Value{v});
    while (!open.empty()) {
      const NodeId i = open.back();
      open.pop_back();
      for_each_input(graph_.nodes[i], need);
    }
    std::vector<std::vector<NodeId>> behind(graph_.nodes.size() + 1);  // what follows a node; the first: at the start
    std::vector<NodeId> place(graph_.nodes.size());
    for (NodeId i = 0; i < graph_.nodes.size(); ++i) {
      if (!early[i]) continue;
      place[i] = i + 1;
      if (graph_.nodes[i].phase == Phase::forward) continue;
      place[i] = 0;
      for_each_input(graph_.nodes[i], [&](Value v) {
        if (NodeId from = graph_.info(v).producer; from != no_id) place[i] = std::max(place[i], place[from]);
      });
      behind[place[i]].push_back(i);
    }
    Replay replay(graph_);
    replay.inputs();
    auto emit = [&](NodeId i, Phase phase) {
      const NodeId made = replay.node(graph_.nodes[i]);
      replay.graph->nodes[made].phase = phase;
    };
    for (NodeId i : behind[0]) emit(i, Phase::forward);
    for (NodeId i = 0; i < graph_.nodes.size(); ++i) {
      if (early[i] && graph_.nodes[i].phase == Phase::forward) emit(i, Phase::forward);
      for (NodeId k : behind[i + 1]) emit(k, Phase::forward);
    }
    // The backward sees of the forward what is kept; the rest it makes when it is first asked for.
    const std::vector<Value> forward = replay.map;
    for (ValueId v = 0; v < graph_.values.size(); ++v) {
      const bool tensor = graph_.values[v].type == ValueType::tensor;
      if (tensor && !saved[v] && graph_.values[v].producer != no_id) replay.map[v] = Value{};
    }
    std::vector<NodeId> again;
    auto ask = [&](Value v) {
      const NodeId from = v ? graph_.info(v).producer : no_id;
      if (from == no_id || replay.map[v.id]) return;
      if (std::find(again.begin(), again.end(), from) == again.end()) again.push_back(from);
    };
    auto make_asked = [&] {
      for (size_t k = 0; k < again.size(); ++k) for_each_input(graph_.nodes[again[k]], ask);
      std::sort(again.begin(), again.end());
      for (NodeId i : again) {
        const std::vector<Value> before = values_of(replay.map, graph_.nodes[i]);
        emit(i, Phase::backward);
        size_t next = 0;  // results that are kept stay what they were
        for_each_result(graph_.nodes[i], [&](Value v) {
          if (before[next]) replay.map[v.id] = before[next];
          ++next;
        });
      }
      again.clear();
    };
    for (NodeId i = 0; i < graph_.nodes.size(); ++i) {
      if (!in_backward_[i]) continue;
      for_each_input(graph_.nodes[i], ask);
      make_asked();
      emit(i, graph_.nodes[i].phase);
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      if (is_late(i)) {
        for_each_tensor(graph_.outputs[i], ask);
        make_asked();
        replay.graph->outputs.push_back(replay.moved(graph_.outputs[i]));
      } else {
        replay.graph->outputs.push_back(
            map_tensors<Value>(graph_.outputs[i], [&](const Value& v) { return v ? forward[v.id] : v; }));
      }
    }
    Graph out = remove_dead_code(std::move(replay.graph));
    verify(out.body());
    return out;
  }

  static std::vector<Value> values_of(const std::vector<Value>& map, const Node& node) {
    std::vector<Value> out;
    for_each_result(node, [&](Value v) { out.push_back(map[v.id]); });
    return out;
  }

  const GraphBody& graph_;
  const CallingConvention& convention_;
  const RematerializeOptions& options_;
  std::vector<std::vector<NodeId>> users_;      // by value
  std::vector<uint32_t> inputs_of_;             // by value: which input it is
  std::vector<bool> in_backward_, in_forward_;  // by node
  std::vector<bool> updated_;                   // by value: inputs that the forward overwrites
  std::vector<size_t> distance_;                // by node: steps to the backward
};

}  // namespace

Graph rematerialize(const GraphBody& graph, const CallingConvention& convention, const RematerializeOptions& options) {
  Graph merged = remove_dead_code(merge_common_subexpressions(graph));
  Rematerializer work(merged.body(), convention, options);
  if (!work.has_backward()) return merged;
  return work.run();
}

JointProgram rematerialize(const JointProgram& joint, const RematerializeOptions& options) {
  JointProgram out;
  out.graph = rematerialize(joint.graph.body(), joint.convention, options);
  out.convention = joint.convention;
  out.loss = joint.loss;
  return out;
}

}  // namespace tenon

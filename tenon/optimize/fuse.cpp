#include "tenon/optimize/fuse.h"

#include <algorithm>
#include <queue>

#include "tenon/optimize/anchors.h"
#include "tenon/optimize/compact.h"
#include "tenon/optimize/rewrite.h"
#include "tenon/optimize/step_list.h"

namespace tenon::optimize {
namespace {

using loop::BufferId;
using loop::ExprId;
using loop::ExprNode;
using loop::Fn;
using loop::Role;
using loop::Stage;
using loop::Store;

constexpr size_t most_nodes = 200, most_loads = 24;  // of a fused stage: what a kernel can keep in hand
constexpr size_t most_readers = 32;                  // into which one value is put
constexpr double step_work = 2000;                   // what a step costs beside its elements, in additions
constexpr double memory_work = 2;                    // an element stored or loaded

/// Sizes that only the run tells count as 64.
double estimate(const Sizes& sizes) {
  double n = 1;
  for (SymInt e : sizes) n *= e.is_int() ? static_cast<double>(e.as_int()) : 64.0;
  return n;
}

bool is_one(SymInt e) { return e == SymInt(1); }

/// A store that gives every element of its buffer a value, at its own index: which loop each dimension is.
struct Covering {
  std::vector<std::optional<size_t>> loop_of_dim, dim_of_loop;
};

std::optional<Covering> covering(const loop::Program& program, const Stage& stage, const Store& store) {
  const loop::Buffer& buffer = program.buffers[store.to];
  if (buffer.view_of != loop::no_buffer || store.mode != loop::Mode::set || store.where != ~0u) return std::nullopt;
  Covering out;
  out.loop_of_dim.resize(buffer.sizes.size());
  out.dim_of_loop.resize(stage.domain.size());
  for (size_t d = 0; d < buffer.sizes.size(); ++d) {
    auto k = as_loop(program.arena, store.at[d]);
    if (k && *k < stage.domain.size() && stage.domain[*k] == buffer.sizes[d] && !out.dim_of_loop[*k]) {
      out.loop_of_dim[d] = *k;
      out.dim_of_loop[*k] = d;
    } else if (!is_one(buffer.sizes[d])) return std::nullopt;
  }
  for (size_t k = 0; k < stage.domain.size(); ++k)
    if (!out.dim_of_loop[k] && !is_one(stage.domain[k])) return std::nullopt;
  return out;
}

/// Stages whose stores never meet each other, so that their points may be computed in any order.
bool stores_apart(const loop::Program& program, const Stage& stage) {
  return std::all_of(stage.stores.begin(), stage.stores.end(), [&](const Store& s) {
    return s.mode == loop::Mode::set && s.where == ~0u &&
           std::all_of(s.at.begin(), s.at.end(), [&](ExprId at) { return is_strided(program.arena, at); });
  });
}

class Fusion {
 public:
  Fusion(loop::Program& program, StepList& list) : program_(program), list_(list) {}

  void run() {
    list_.remove_dead();
    for (size_t i = 0; i < list_.size(); ++i) push(i);
    while (!queue_.empty()) {
      size_t i = list_.size() - queue_.top().second;
      queue_.pop();
      if (list_.alive(i)) attempt(i);
    }
    list_.remove_dead();
  }

 private:
  void push(size_t i) {
    const Stage* stage = list_.alive(i) ? list_.stage(i) : nullptr;
    if (!stage) return;
    double bytes = 0;
    for (const Store& s : stage->stores) {
      const loop::Buffer& b = program_.buffers[s.to];
      size_t readers = list_.readers(root_of(program_, s.to)).size();
      bytes += estimate(b.sizes) * static_cast<double>(item_size(b.dtype) * (1 + readers));
    }
    queue_.emplace(bytes, list_.size() - i);  // of equals the first: readers grow from short ones
  }

  void attempt(size_t p) {
    for (size_t k = list_.stage(p)->stores.size(); k-- > 0;) {
      if (!list_.alive(p)) return;
      if (k < list_.stage(p)->stores.size()) put_into_readers(p, k);
    }
    if (list_.alive(p)) join_first_reader(p);
  }

  // Everything that may be possible now: what was changed, and who writes what it reads.
  void changed(size_t c) {
    push(c);
    for (BufferId b : list_.reads(c))
      if (list_.writers(b).size() == 1) push(*list_.writers(b).begin());
  }

  // The value of one store, in place of all loads of its buffer. The store is gone then.
  void put_into_readers(size_t p, size_t k) {
    const Stage& producer = *list_.stage(p);
    const Store store = producer.stores[k];
    BufferId b = store.to;
    auto cover = covering(program_, producer, store);
    if (!cover || !producer.accumulators.empty() || !list_.is_private(b) || list_.writers(b).size() != 1) return;
    if (std::count_if(producer.stores.begin(), producer.stores.end(), [&](const Store& s) { return s.to == b; }) != 1)
      return;
    const std::set<size_t> readers = list_.readers(b);
    if (readers.empty() || readers.size() > most_readers || *readers.begin() <= p) return;
    if (list_.fails(p) && readers.size() > 1) return;

    const bool epilogue = is_epilogue(program_, list_, p);
    double elements = estimate(program_.buffers[b].sizes);
    Weight value = weight(program_, std::span(&store.value, 1));
    double gain = elements * memory_work + (producer.stores.size() == 1 ? step_work : 0);
    gain += elements * (weight_of(producer, ~size_t{0}).work - weight_of(producer, k).work);
    double least = 0;  // evaluations: each reader loads it once or more
    for (size_t c : readers)
      if (const Stage* reader = list_.stage(c))
        least += estimate(reader->domain) * std::min(1.0, estimate(reader->reduce));
    if (value.work > memory_work && gain + least * (memory_work - value.work) <= 0) return;
    for (size_t c : readers) {
      const Stage* reader = list_.stage(c);
      if (!reader || list_.overwritten(p, p, c - 1)) return;
      if (list_.fails(p) && (list_.fails(c) || c >= list_.first_update())) return;
      Uses uses = uses_of(*reader, b);
      if (epilogue && (uses.inner > 0 || !reads_in_place(*reader, b))) return;  // an anchor does it for nothing
      double points = estimate(reader->domain);
      double evaluations = points * static_cast<double>(uses.outer) +
                           points * estimate(reader->reduce) * static_cast<double>(uses.inner);
      gain += evaluations * (memory_work - value.work);
    }
    if (gain <= 0) return;
    std::vector<std::pair<size_t, Stage>> fused;
    for (size_t c : readers) {  // last: most attempts end before it, and it is most of their work
      Stage stage = *list_.stage(c);
      if (!put_into(store, *cover, list_.fails(p), stage)) return;
      Weight whole = weight(program_, expressions_of(stage));
      if (whole.nodes > most_nodes || whole.loads > most_loads) return;
      if (list_.overwritten(p, c - 1, c) && !in_place(stage)) return;
      fused.emplace_back(c, std::move(stage));
    }
    for (auto& [c, stage] : fused) {
      if (list_.fails(p)) list_.node(c) = list_.node(p);
      list_.replace(c, std::move(stage));
    }
    if (producer.stores.size() == 1) list_.remove(p);
    else {
      Stage rest = producer;
      rest.stores.erase(rest.stores.begin() + static_cast<ptrdiff_t>(k));
      list_.replace(p, std::move(rest));
    }
    for (auto& [c, stage] : fused) changed(c);
  }

  Weight weight_of(const Stage& stage, size_t without) const {
    std::vector<ExprId> values;
    for (size_t i = 0; i < stage.stores.size(); ++i)
      if (i != without) values.push_back(stage.stores[i].value);
    return weight(program_, values);
  }

  struct Uses {
    size_t inner = 0, outer = 0;  // loads of a buffer: within the reduction, outside
  };
  Uses uses_of(const Stage& stage, BufferId root) const {
    Uses out;
    std::vector<ExprId> inner, outer;
    for (const loop::Accumulator& a : stage.accumulators) inner.push_back(a.value);
    for (const Store& s : stage.stores) {
      outer.insert(outer.end(), s.at.begin(), s.at.end());
      outer.push_back(s.value);
      outer.push_back(s.where);
    }
    auto count = [&](const std::vector<ExprId>& exprs, size_t& n) {
      for_each_node(program_.arena, exprs, [&](ExprId id) {
        const ExprNode& node = program_.arena[id];
        if (node.fn == Fn::load && root_of(program_, node.buffer) == root) ++n;
      });
    };
    count(inner, out.inner);
    count(outer, out.outer);
    return out;
  }

  /// Every load of the buffer is at the very index of the domain: the reader can be an epilogue, too.
  bool reads_in_place(const Stage& reader, BufferId root) {
    bool same = true;
    for_each_node(program_.arena, expressions_of(reader), [&](ExprId id) {
      const ExprNode n = program_.arena[id];
      if (n.fn != Fn::load || root_of(program_, n.buffer) != root) return;
      same = same && n.guard == ~0u;
      for (size_t d = 0; d < n.args.size(); ++d)
        same = same && (as_loop(program_.arena, n.args[d]) || is_one(program_.buffers[n.buffer].sizes[d]));
    });
    return same && estimate(reader.domain) <= estimate(program_.buffers[root].sizes);
  }

  bool put_into(const Store& store, const Covering& cover, bool whole, Stage& reader) {
    const Sizes loops = loops_of(reader);
    const Sizes sizes = program_.buffers[store.to].sizes;
    DType dtype = program_.buffers[store.to].dtype;
    bool possible = true;
    Rewrite replace(program_.arena, [&](const ExprNode& n) -> std::optional<ExprId> {
      if (!possible || n.fn != Fn::load || root_of(program_, n.buffer) != store.to) return std::nullopt;
      auto at = root_index(program_, n.buffer, n.args, loops);
      possible = at && program_.buffers[n.buffer].dtype == dtype;
      std::vector<bool> taken(loops.size(), false);
      for (size_t d = 0; possible && d < sizes.size(); ++d) {
        auto k = as_loop(program_.arena, (*at)[d]);
        bool own = k && loops[*k] == sizes[d] && !taken[*k];
        if (k) taken[*k] = true;
        if (whole) possible = n.guard == ~0u && (own || is_one(sizes[d]));
        else possible = n.guard != ~0u || within(program_.arena, (*at)[d], sizes[d], loops);
      }
      if (!possible) return std::nullopt;
      loop::Expr zero = loop::constant(program_.arena, int64_t{0}, loop::Compute::i64);
      std::vector<ExprId> index;
      for (const auto& dim : cover.dim_of_loop) index.push_back(dim ? (*at)[*dim] : zero.id);
      loop::Expr value(&program_.arena, with_loops(program_.arena, store.value, index, n.guard));
      value = loop::round_to(value, dtype);
      if (n.guard != ~0u) value = loop::select({&program_.arena, n.guard}, value, {&program_.arena, n.otherwise});
      return value.id;
    });
    replace(reader);
    return possible;
  }

  // A stage that reads memory that it writes, each element where it is written.
  bool in_place(const Stage& stage) const {
    if (!stores_apart(program_, stage)) return false;
    bool same = true;
    for (const Store& store : stage.stores) {
      BufferId root = root_of(program_, store.to);
      if (uses_of(stage, root).inner > 0) return false;
      auto stores = std::count_if(stage.stores.begin(), stage.stores.end(),
                                  [&](const Store& s) { return root_of(program_, s.to) == root; });
      for_each_node(program_.arena, expressions_of(stage), [&](ExprId id) {
        const ExprNode& n = program_.arena[id];
        if (n.fn == Fn::load && root_of(program_, n.buffer) == root)
          same = same && stores == 1 && n.buffer == store.to &&
                 std::equal(n.args.begin(), n.args.end(), store.at.begin(), store.at.end()) && n.guard == ~0u;
      });
    }
    return same;
  }

  // A pointwise stage that reads what this one stores, at the very index, becomes part of it, where that stage stood.
  void join_first_reader(size_t p) {
    const Stage& producer = *list_.stage(p);
    size_t c = list_.size();
    for (BufferId b : list_.writes(p))
      for (size_t reader : list_.readers(b)) {
        Role role = program_.buffers[b].role;
        bool updated = role == Role::input || role == Role::state;  // what is read before is what it held before
        if (reader <= p && updated) continue;
        if (reader <= p) return;
        c = std::min(c, reader);
        break;
      }
    if (c == list_.size()) return;
    const Stage* reader = list_.stage(c);
    if (!reader || !reader->accumulators.empty() || (list_.updates(p) && list_.fails(c))) return;
    if (!stores_apart(program_, producer) || !stores_apart(program_, *reader)) return;
    if (list_.overwritten(p, p, c - 1)) return;
    for (BufferId b : list_.writes(p)) {
      auto next = list_.writers(b).upper_bound(p);
      if (next != list_.writers(b).end() && *next <= c) return;
    }
    const bool reads_own = std::any_of(list_.writes(c).begin(), list_.writes(c).end(), [&](BufferId b) {
      return std::binary_search(list_.reads(c).begin(), list_.reads(c).end(), b);
    });
    if (list_.fails(p) && (list_.fails(c) || c >= list_.first_update())) return;

    auto joined = join(producer, *reader);
    if (!joined) return;
    bool itself = reads_own || list_.updates(p) || list_.overwritten(p, c - 1, c);
    if (itself && !in_place(*joined)) return;
    Weight whole = weight(program_, expressions_of(*joined));
    if (whole.nodes > most_nodes || whole.loads > most_loads) return;
    if (list_.fails(p)) list_.node(c) = list_.node(p);
    list_.remove(p);
    list_.replace(c, std::move(*joined));
    list_.remove_dead(c);
    changed(c);
  }

  std::optional<Stage> join(const Stage& producer, const Stage& reader) {
    struct Value {
      const Store* store;
      Covering cover;
    };
    std::vector<std::pair<BufferId, Value>> values;
    for (const Store& s : producer.stores)
      if (auto cover = covering(program_, producer, s)) {
        bool once = list_.writers(s.to).size() == 1;
        for (auto& [b, v] : values) once = once && b != s.to;
        if (!once) return std::nullopt;
        values.emplace_back(s.to, Value{&s, *cover});
      }
    auto value_of = [&](BufferId root) -> const Value* {
      for (auto& [b, v] : values)
        if (b == root) return &v;
      return nullptr;
    };
    auto stored_by_producer = [&](BufferId root) {
      return std::any_of(producer.stores.begin(), producer.stores.end(),
                         [&](const Store& s) { return root_of(program_, s.to) == root; });
    };

    // Which loop of the producer each loop of the reader is.
    const Sizes loops = reader.domain;
    std::vector<std::optional<size_t>> as(loops.size());
    bool possible = true;
    for_each_node(program_.arena, expressions_of(reader), [&](ExprId id) {
      const ExprNode n = program_.arena[id];
      if (!possible || n.fn != Fn::load || !stored_by_producer(root_of(program_, n.buffer))) return;
      const Value* value = value_of(root_of(program_, n.buffer));
      auto at = value && n.guard == ~0u && program_.buffers[n.buffer].dtype == program_.buffers[value->store->to].dtype
                    ? root_index(program_, n.buffer, n.args, loops)
                    : std::nullopt;
      possible = at.has_value();
      for (size_t d = 0; possible && d < at->size(); ++d) {
        auto own = value->cover.loop_of_dim[d];
        if (!own || is_one(producer.domain[*own])) continue;
        auto k = as_loop(program_.arena, (*at)[d]);
        possible = k && loops[*k] == producer.domain[*own] && (!as[*k] || as[*k] == own);
        if (possible) as[*k] = own;
      }
    });
    if (!possible) return std::nullopt;
    size_t next = 0;  // in the same order, and all of them
    auto skip = [&] {
      while (next < producer.domain.size() && is_one(producer.domain[next])) ++next;
    };
    for (size_t k = 0; k < loops.size(); ++k) {
      if (!as[k]) {
        if (!is_one(loops[k])) return std::nullopt;
        continue;
      }
      skip();
      if (*as[k] != next++) return std::nullopt;
    }
    skip();
    if (next != producer.domain.size()) return std::nullopt;

    Stage out = producer;
    Stage moved = reader;
    Rewrite rewrite(program_.arena, [&](const ExprNode& n) -> std::optional<ExprId> {
      if (n.fn == Fn::index) {
        auto k = as[static_cast<size_t>(n.integer)];
        if (!k) return loop::constant(program_.arena, int64_t{0}, loop::Compute::i64).id;
        return program_.arena.add({.fn = Fn::index, .type = loop::Compute::i64, .integer = static_cast<int64_t>(*k)});
      }
      if (n.fn != Fn::load) return std::nullopt;
      const Value* value = value_of(root_of(program_, n.buffer));
      if (!value) return std::nullopt;
      return loop::round_to({&program_.arena, value->store->value}, program_.buffers[value->store->to].dtype).id;
    });
    rewrite(moved);
    out.stores.insert(out.stores.end(), moved.stores.begin(), moved.stores.end());
    return out;
  }

  loop::Program& program_;
  StepList& list_;
  std::priority_queue<std::pair<double, size_t>> queue_;
};

}  // namespace

loop::Program fuse(loop::Program program) {
  for_each_list(program, [&](StepList& list) { Fusion(program, list).run(); });
  return compact(std::move(program));
}

}  // namespace tenon::optimize

#include "tenon/plan/units.h"

#include <algorithm>
#include <set>

#include "tenon/optimize/anchors.h"
#include "tenon/optimize/rewrite.h"
#include "tenon/plan/library.h"

namespace tenon::plan {
namespace {

using loop::BufferId;
using loop::Fn;
using loop::Role;
using loop::Stage;

constexpr double small_unit = 16384;  // points: as many as one thread is given anyway
constexpr double shortest_row = 64;   // points: below, lanes over rows do better
constexpr size_t most_stages = 12;    // of a unit
constexpr size_t most_nodes = 800;
constexpr size_t look_ahead = 24;  // steps

/// Sizes that only the run tells count as 64.
double estimate(SymInt e) { return e.is_int() ? static_cast<double>(e.as_int()) : 64.0; }
double points_of(const Stage& stage) {
  double n = 1;
  for (const Sizes* sizes : {&stage.domain, &stage.reduce})
    for (SymInt e : *sizes) n *= estimate(e);
  return n;
}
bool is_known(const Stage& stage) {
  auto number = [](SymInt e) { return e.is_int(); };
  return std::all_of(stage.domain.begin(), stage.domain.end(), number) &&
         std::all_of(stage.reduce.begin(), stage.reduce.end(), number);
}

struct Uses {
  std::set<BufferId> reads, writes;  // roots
  void add(const Uses& other) {
    reads.insert(other.reads.begin(), other.reads.end());
    writes.insert(other.writes.begin(), other.writes.end());
  }
};
bool meet(const std::set<BufferId>& a, const std::set<BufferId>& b) {
  return std::any_of(a.begin(), a.end(), [&](BufferId x) { return b.contains(x); });
}

class Units {
 public:
  Units(const loop::Program& program, const std::vector<loop::Step>& steps) : program_(program), steps_(steps) {
    for (const loop::Step& step : steps) {
      Uses u;
      loop::for_each_read(program, step, [&](BufferId b) { u.reads.insert(root(b)); });
      loop::for_each_write(program, step, [&](BufferId b) { u.writes.insert(root(b)); });
      uses_.push_back(std::move(u));
      auto* stage = std::get_if<Stage>(&step);
      fails_.push_back(stage && optimize::may_fail(program, *stage));
    }
  }

  std::vector<Unit> run() {
    taken_.resize(steps_.size());
    std::vector<Unit> out;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (taken_[i]) continue;
      out.push_back(unit_from(i));
      for (size_t s : out.back().steps) taken_[s] = true;
    }
    find_locals(out);
    for (Unit& u : out)
      for (size_t s : u.steps) {
        if (fails_[s]) u.origin = s;
        u.fails = u.fails || fails_[s];
        u.updates = u.updates || updates(s);
        u.may_be_passed = may_be_passed(s);
        u.reads.insert(uses_[s].reads.begin(), uses_[s].reads.end());
        u.writes.insert(uses_[s].writes.begin(), uses_[s].writes.end());
      }
    return out;
  }

 private:
  BufferId root(BufferId b) const {
    return program_.buffers[b].view_of == loop::no_buffer ? b : program_.buffers[b].view_of;
  }
  const Stage* stage(size_t i) const { return std::get_if<Stage>(&steps_[i]); }
  bool updates(size_t i) const {
    return std::any_of(uses_[i].writes.begin(), uses_[i].writes.end(), [&](BufferId b) {
      return program_.buffers[b].role == Role::input || program_.buffers[b].role == Role::state;
    });
  }

  bool updated(const Unit& unit) const {
    return std::any_of(unit.steps.begin(), unit.steps.end(), [&](size_t s) { return updates(s); });
  }

  /// Steps that others may be moved in front of.
  bool may_be_passed(size_t i) const {
    const loop::Step& s = steps_[i];
    return !std::holds_alternative<loop::Call>(s) && !std::holds_alternative<loop::Bind>(s) &&
           !std::holds_alternative<loop::Check>(s) && !std::holds_alternative<loop::Control>(s);
  }

  Unit unit_from(size_t first) {
    Unit unit;
    unit.steps = {first};
    unit.origin = first;
    if (!stage(first)) {
      add_epilogue(unit);
      return unit;
    }
    Uses own = uses_[first], passed;
    bool fails = fails_[first];
    for (size_t j = first + 1; j < steps_.size() && j <= first + look_ahead; ++j) {
      if (taken_[j]) continue;
      if (!may_be_passed(j)) break;
      // An update comes behind whatever may fail. Of two stages that may, it must be clear which one did.
      if (updates(j) && (fails || !passed.writes.empty())) break;
      const Uses& u = uses_[j];
      bool moves = !meet(u.reads, passed.writes) && !meet(u.writes, passed.writes) && !meet(u.writes, passed.reads);
      bool clear = !fails_[j] || (!fails && !updated(unit));
      if (moves && clear && stage(j) && unit.steps.size() < most_stages && joins(unit, own, j)) {
        unit.steps.push_back(j);
        own.add(u);
        fails = fails || fails_[j];
      } else passed.add(u);
    }
    return unit;
  }

  /// The first stage behind an anchor that can work on blocks of its results. It is moved up to the anchor.
  void add_epilogue(Unit& unit) {
    const size_t first = unit.steps[0];
    auto anchor = optimize::anchor_of(steps_[first]);
    if (!anchor || anchor->adds_to_result) return;
    auto blocks = result_blocks(program_, steps_[first]);
    if (!blocks) return;
    const BufferId result = root(anchor->out->buffer);
    Uses passed;
    for (size_t j = first + 1; j < steps_.size() && j <= first + look_ahead; ++j) {
      if (taken_[j]) continue;
      const Uses& u = uses_[j];
      if (!may_be_passed(j) || u.writes.contains(result)) return;
      bool moves = !meet(u.reads, passed.writes) && !meet(u.writes, passed.writes) && !meet(u.writes, passed.reads);
      bool apart = !meet(u.writes, uses_[first].reads) && !meet(u.writes, u.reads);
      if (stage(j) && u.reads.contains(result) && moves && apart && !fails_[j] && !updates(j))
        if (auto block = compile::block_stage(program_, *stage(j), *anchor->out, anchor->channel)) {
          block->whole_rows = blocks->whole_rows;
          unit.epilogue = std::move(block);
          unit.steps.push_back(j);
          return;
        }
      passed.add(u);
    }
  }

  bool joins(Unit& unit, const Uses& own, size_t j) {
    compile::RowStages both;
    size_t nodes = 0;
    double points = 0;
    bool known = true;
    auto add = [&](const Stage* s) {
      both.stages.push_back(s);
      points += points_of(*s);
      known = known && is_known(*s);
      nodes += nodes_of(*s);
    };
    for (size_t s : unit.steps) add(stage(s));
    add(stage(j));
    if (nodes > most_nodes) return false;
    if (known && points <= small_unit) {
      unit.rows = 0;
      return true;
    }
    if (!meet(uses_[j].reads, own.writes)) return false;
    // The longest prefix of loops that all of them have.
    size_t most = unit.steps.size() > 1 ? unit.rows : ~size_t{0};
    for (const Stage* s : both.stages) most = std::min(most, common(*both.stages[0], *s));
    for (both.rows = most; both.rows > 0; --both.rows) {
      double longest = 0;
      for (const Stage* s : both.stages) longest = std::max(longest, points_of(*s) / rows_of(*s, both.rows));
      if (longest < shortest_row || !compile::row_by_row(program_, both)) continue;
      if (rows_of(*both.stages[0], both.rows) < 8) return false;  // too few to share among threads
      unit.rows = both.rows;
      return true;
    }
    return false;
  }
  static double rows_of(const Stage& stage, size_t rows) {
    double n = 1;
    for (size_t k = 0; k < stage.domain.size() && rows > 0; ++k)
      if (stage.domain[k] != SymInt(1)) {
        n *= estimate(stage.domain[k]);
        --rows;
      }
    return n;
  }
  static size_t common(const Stage& a, const Stage& b) {
    std::vector<SymInt> first, second;
    for (SymInt e : a.domain)
      if (e != SymInt(1)) first.push_back(e);
    for (SymInt e : b.domain)
      if (e != SymInt(1)) second.push_back(e);
    auto [at, end] = std::mismatch(first.begin(), first.end(), second.begin(), second.end());
    return static_cast<size_t>(at - first.begin());
  }
  size_t nodes_of(const Stage& stage) const {
    std::set<loop::ExprId> seen;
    auto visit = [&](auto&& self, loop::ExprId id) -> void {
      if (id == ~0u || !seen.insert(id).second) return;
      const loop::ExprNode& n = program_.arena[id];
      for (loop::ExprId a : n.args) self(self, a);
      self(self, n.guard);
      self(self, n.otherwise);
    };
    for (const loop::Accumulator& a : stage.accumulators) visit(visit, a.value);
    for (const loop::Store& s : stage.stores) visit(visit, s.value);
    return seen.size();
  }

  /// Memory of the session that the steps of one unit alone use.
  void find_locals(std::vector<Unit>& units) const {
    constexpr size_t many = ~size_t{0};
    std::vector<size_t> unit_of(program_.buffers.size(), many - 1);
    auto use = [&](BufferId b, size_t unit) {
      size_t& known = unit_of[root(b)];
      known = known == many - 1 || known == unit ? unit : many;
    };
    for (size_t u = 0; u < units.size(); ++u)
      for (size_t s : units[u].steps)
        for (const std::set<BufferId>* set : {&uses_[s].reads, &uses_[s].writes})
          for (BufferId b : *set) use(b, u);
    for_each_other_list([&](const loop::Step& step) {
      auto elsewhere = [&](BufferId b) { use(b, many); };
      loop::for_each_read(program_, step, elsewhere);
      loop::for_each_write(program_, step, elsewhere);
    });
    for (const loop::Output& o : program_.outputs)
      if (o.buffer != loop::no_buffer) use(o.buffer, many);
    for (BufferId b = 0; b < program_.buffers.size(); ++b)
      if (unit_of[b] < units.size() && units[unit_of[b]].steps.size() > 1 && program_.buffers[b].role == Role::arena &&
          program_.buffers[b].view_of == loop::no_buffer)
        units[unit_of[b]].locals.push_back(b);
  }
  template <class F>
  void for_each_other_list(F&& visit) const {
    auto walk = [&](auto&& self, const std::vector<loop::Step>& list) -> void {
      if (&list == &steps_) return;
      for (const loop::Step& step : list) {
        if (auto* control = std::get_if<loop::Control>(&step))
          for (const loop::Body& body : control->bodies) self(self, body.steps);
        else visit(step);
      }
    };
    walk(walk, program_.on_state);
    walk(walk, program_.steps);
  }

  const loop::Program& program_;
  const std::vector<loop::Step>& steps_;
  std::vector<Uses> uses_;
  std::vector<bool> taken_, fails_;
};

}  // namespace

std::vector<Unit> make_units(const loop::Program& program, const std::vector<loop::Step>& steps) {
  return Units(program, steps).run();
}

namespace {

constexpr size_t batch_ahead = 48;             // units
constexpr int64_t most_moved_bytes = 8 << 20;  // of results that are made earlier than they would be
constexpr size_t most_instances = 256;

/// Memory of the session that a unit fills.
int64_t bytes_made(const loop::Program& program, const Unit& unit) {
  int64_t bytes = 0;
  for (BufferId b : unit.writes) {
    const loop::Buffer& buffer = program.buffers[b];
    if (buffer.role != Role::arena) continue;
    double elements = 1;
    for (SymInt e : buffer.sizes) elements *= estimate(e);
    bytes += static_cast<int64_t>(elements * static_cast<double>(item_size(buffer.dtype)));
  }
  return bytes;
}

}  // namespace

std::vector<std::vector<size_t>> make_batches(const loop::Program& program, const std::vector<Unit>& units,
                                              const std::vector<std::string>& calls) {
  std::vector<bool> taken(units.size());
  std::vector<std::vector<size_t>> out;
  for (size_t first = 0; first < units.size(); ++first) {
    if (taken[first]) continue;
    out.push_back({first});
    if (calls[first].empty() || units[first].fails) continue;
    Uses others{units[first].reads, units[first].writes};  // of the batch, and of what is passed
    bool fails = false;
    int64_t moved = 0;
    for (size_t j = first + 1; j < units.size() && j <= first + batch_ahead; ++j) {
      if (taken[j]) continue;
      const Unit& u = units[j];
      if (!u.may_be_passed) break;
      bool apart = !meet(u.reads, others.writes) && !meet(u.writes, others.writes) && !meet(u.writes, others.reads);
      bool joins = apart && calls[j] == calls[first] && !u.fails && !(u.updates && fails) &&
                   out.back().size() < most_instances && moved + bytes_made(program, u) <= most_moved_bytes;
      if (joins) {
        out.back().push_back(j);
        taken[j] = true;
        moved += bytes_made(program, u);
      } else fails = fails || u.fails;
      others.add({u.reads, u.writes});
    }
  }
  return out;
}

}  // namespace tenon::plan

#include "tenon/optimize/rewrite.h"

#include <unordered_set>

namespace tenon::optimize {

using loop::Arena;
using loop::Compute;
using loop::ExprId;
using loop::ExprNode;
using loop::Fn;

ExprId Rewrite::operator()(ExprId id) {
  if (id == ~0u) return id;
  if (auto known = done_.find(id); known != done_.end()) return known->second;
  ExprNode node = arena_[id];
  bool changed = false;
  auto rebuild = [&](ExprId& operand) {
    ExprId rebuilt = (*this)(operand);
    changed = changed || rebuilt != operand;
    operand = rebuilt;
  };
  for (ExprId& arg : node.args) rebuild(arg);
  rebuild(node.guard);
  rebuild(node.otherwise);
  std::optional<ExprId> other = replace_(node);
  ExprId result = id;
  if (other) result = *other;
  else if (changed && node.type == Compute::i64 && (node.fn == Fn::add || node.fn == Fn::sub || node.fn == Fn::mul))
    result = loop::call(node.fn, {&arena_, node.args[0]}, {&arena_, node.args[1]}).id;  // it drops 0 and 1
  else if (changed) result = arena_.add(std::move(node));
  done_.emplace(id, result);
  return result;
}

void Rewrite::operator()(loop::Stage& stage) {
  for (loop::Accumulator& a : stage.accumulators) a.value = (*this)(a.value);
  for (loop::Store& s : stage.stores) {
    for (ExprId& at : s.at) at = (*this)(at);
    s.value = (*this)(s.value);
    s.where = (*this)(s.where);
  }
}

ExprId with_loops(Arena& arena, ExprId expr, std::span<const ExprId> loops, ExprId guard) {
  bool same = guard == ~0u;
  for (size_t k = 0; same && k < loops.size(); ++k)
    same = arena[loops[k]].fn == Fn::index && arena[loops[k]].integer == static_cast<int64_t>(k);
  if (same) return expr;
  return Rewrite(arena, [&](const ExprNode& n) -> std::optional<ExprId> {
    if (n.fn == Fn::index) return loops[static_cast<size_t>(n.integer)];
    if (n.fn != Fn::load || guard == ~0u) return std::nullopt;
    ExprNode load = n;
    if (load.guard == ~0u) {
      load.guard = guard;
      load.otherwise = loop::constant(arena, int64_t{0}, n.type).id;
    } else load.guard = (loop::Expr(&arena, guard) && loop::Expr(&arena, load.guard)).id;
    return arena.add(std::move(load));
  })(expr);
}

namespace {

void visit_below(const Arena& arena, ExprId id, std::unordered_set<ExprId>& seen,
                 const std::function<void(ExprId)>& visit) {
  if (id == ~0u || !seen.insert(id).second) return;
  const ExprNode n = arena[id];  // a copy: the visitor may add to the arena
  for (ExprId arg : n.args) visit_below(arena, arg, seen, visit);
  visit_below(arena, n.guard, seen, visit);
  visit_below(arena, n.otherwise, seen, visit);
  visit(id);
}

}  // namespace

// Each node once: sums of a sum with itself would take 2^levels steps.
static bool is_strided(const Arena& arena, ExprId id, std::unordered_set<ExprId>& seen) {
  if (!seen.insert(id).second) return true;  // or it was found not to be, which ends the search
  const ExprNode& n = arena[id];
  switch (n.fn) {
    case Fn::constant:
    case Fn::size:
    case Fn::index: return true;
    case Fn::add:
    case Fn::sub: return is_strided(arena, n.args[0], seen) && is_strided(arena, n.args[1], seen);
    case Fn::mul: {
      auto fixed = [&](ExprId e) { return arena[e].fn == Fn::constant || arena[e].fn == Fn::size; };
      if (fixed(n.args[0])) return is_strided(arena, n.args[1], seen);
      return fixed(n.args[1]) && is_strided(arena, n.args[0], seen);
    }
    default: return false;
  }
}

bool is_strided(const Arena& arena, ExprId id) {
  std::unordered_set<ExprId> seen;
  return is_strided(arena, id, seen);
}

namespace {

double work_of(Fn fn) {
  switch (fn) {
    case Fn::constant:
    case Fn::index:
    case Fn::size:
    case Fn::accumulated: return 0;
    case Fn::load: return 2;
    case Fn::div:
    case Fn::sqrt:
    case Fn::rsqrt:
    case Fn::reciprocal:
    case Fn::floor_div:
    case Fn::remainder:
    case Fn::fmod: return 4;
    case Fn::pow:
    case Fn::atan2:
    case Fn::hypot:
    case Fn::nextafter:
    case Fn::exp:
    case Fn::exp2:
    case Fn::expm1:
    case Fn::log:
    case Fn::log2:
    case Fn::log10:
    case Fn::log1p:
    case Fn::sin:
    case Fn::cos:
    case Fn::tan:
    case Fn::asin:
    case Fn::acos:
    case Fn::atan:
    case Fn::sinh:
    case Fn::cosh:
    case Fn::tanh:
    case Fn::asinh:
    case Fn::acosh:
    case Fn::atanh:
    case Fn::erf:
    case Fn::erfc:
    case Fn::erfinv:
    case Fn::sigmoid: return 12;
    case Fn::lgamma:
    case Fn::digamma:
    case Fn::random_bits: return 40;
    default: return 1;
  }
}

}  // namespace

void for_each_node(const Arena& arena, std::span<const ExprId> exprs, const std::function<void(ExprId)>& visit) {
  std::unordered_set<ExprId> seen;
  for (ExprId id : exprs) visit_below(arena, id, seen, visit);
}

std::vector<ExprId> expressions_of(const loop::Stage& stage) {
  std::vector<ExprId> out;
  for (const loop::Accumulator& a : stage.accumulators) out.push_back(a.value);
  for (const loop::Store& s : stage.stores) {
    out.insert(out.end(), s.at.begin(), s.at.end());
    out.push_back(s.value);
    if (s.where != ~0u) out.push_back(s.where);
  }
  return out;
}

Weight weight(const loop::Program& program, std::span<const ExprId> exprs) {
  Weight out;
  const Arena& arena = program.arena;
  std::unordered_set<ExprId> seen;
  auto add = [&](auto&& self, ExprId id) -> void {
    if (id == ~0u || !seen.insert(id).second) return;
    const ExprNode& n = arena[id];
    ++out.nodes;
    out.work += work_of(n.fn);
    if (n.fn != Fn::load) {
      for (ExprId arg : n.args) self(self, arg);
      return;
    }
    ++out.loads;
    bool gathers = n.guard != ~0u;
    for (ExprId arg : n.args)
      if (!is_strided(arena, arg)) {
        gathers = true;
        self(self, arg);
      }
    if (gathers) out.work += 6;
    self(self, n.guard);
    self(self, n.otherwise);
  };
  for (ExprId id : exprs) add(add, id);
  return out;
}

bool may_fail(const loop::Program& program, const loop::Stage& stage) {
  const Arena& arena = program.arena;
  std::unordered_map<ExprId, bool> reads;  // whether data decides it; operands come first
  bool fails = false;
  auto decided_by_data = [&](ExprId id) { return id != ~0u && reads.at(id); };
  for_each_node(arena, expressions_of(stage), [&](ExprId id) {
    const ExprNode& n = arena[id];
    bool below = decided_by_data(n.guard) || decided_by_data(n.otherwise), index = false;
    for (ExprId arg : n.args) index = index || decided_by_data(arg);
    reads[id] = n.fn == Fn::load || n.fn == Fn::accumulated || below || index;
    if (n.fn == Fn::load && index) fails = true;
    bool divides = n.fn == Fn::div || n.fn == Fn::floor_div || n.fn == Fn::remainder || n.fn == Fn::fmod;
    if (n.type == Compute::i64 && divides) {
      const ExprNode& by = arena[n.args[1]];
      fails = fails || by.fn != Fn::constant || by.integer == 0;
    }
  });
  for (const loop::Store& s : stage.stores)
    for (ExprId at : s.at) fails = fails || reads.at(at);
  return fails;
}

void drop_unused_accumulators(Arena& arena, loop::Stage& stage) {
  std::vector<bool> used(stage.accumulators.size(), false);
  std::vector<ExprId> stored;
  for (const loop::Store& s : stage.stores) {
    stored.insert(stored.end(), s.at.begin(), s.at.end());
    stored.push_back(s.value);
    stored.push_back(s.where);
  }
  for_each_node(arena, stored, [&](ExprId id) {
    if (arena[id].fn == Fn::accumulated) used[static_cast<size_t>(arena[id].integer)] = true;
  });
  if (std::all_of(used.begin(), used.end(), [](bool u) { return u; })) return;
  std::vector<int64_t> now(used.size(), 0);
  std::vector<loop::Accumulator> kept;
  for (size_t i = 0; i < used.size(); ++i) {
    now[i] = static_cast<int64_t>(kept.size());
    if (used[i]) kept.push_back(stage.accumulators[i]);
  }
  Rewrite renumber(arena, [&](const ExprNode& n) -> std::optional<ExprId> {
    if (n.fn != Fn::accumulated) return std::nullopt;
    ExprNode moved = n;
    moved.integer = now[static_cast<size_t>(n.integer)];
    return arena.add(std::move(moved));
  });
  stage.accumulators.clear();
  renumber(stage);
  stage.accumulators = std::move(kept);
  if (stage.accumulators.empty()) stage.reduce.clear();
}

}  // namespace tenon::optimize

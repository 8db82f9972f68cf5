#include "tenon/compile/stage_loops.h"

#include <algorithm>
#include <unordered_map>

#include "tenon/base/error.h"

namespace tenon::compile {

using loop::Compute;
using loop::ExprId;
using loop::ExprNode;
using loop::Fn;

static bool is_constant(const Linear& l) {
  return std::all_of(l.by_loop.begin(), l.by_loop.end(), [](SymInt c) { return c == SymInt(0); });
}

namespace {

// Each node once: what is used twice by each level of an expression would take 2^levels steps.
class LinearForms {
 public:
  LinearForms(const loop::Program& program, size_t loops) : program_(program), loops_(loops) {}

  std::optional<Linear> of(ExprId id) {
    const ExprNode& n = program_.arena[id];
    if (n.type != Compute::i64) return std::nullopt;
    Linear out;
    out.by_loop.resize(loops_, SymInt(0));
    switch (n.fn) {
      case Fn::constant: out.base = n.integer; return out;
      case Fn::size: out.base = n.size; return out;
      case Fn::index: out.by_loop[static_cast<size_t>(n.integer)] = 1; return out;
      case Fn::add:
      case Fn::sub:
      case Fn::mul: break;
      default: return std::nullopt;
    }
    if (auto known = known_.find(id); known != known_.end()) return known->second;
    return known_[id] = combined(n);
  }

 private:
  // Of a sum, a difference or a product.
  std::optional<Linear> combined(const ExprNode& n) {
    auto a = of(n.args[0]), b = of(n.args[1]);
    if (!a || !b) return std::nullopt;
    if (n.fn == Fn::mul) {
      if (!is_constant(*a)) std::swap(a, b);
      if (!is_constant(*a)) return std::nullopt;
      for (SymInt& c : b->by_loop) c = c * a->base;
      b->base = b->base * a->base;
      return b;
    }
    a->base = n.fn == Fn::add ? a->base + b->base : a->base - b->base;
    for (size_t i = 0; i < loops_; ++i)
      a->by_loop[i] = n.fn == Fn::add ? a->by_loop[i] + b->by_loop[i] : a->by_loop[i] - b->by_loop[i];
    return a;
  }

  const loop::Program& program_;
  size_t loops_;
  std::unordered_map<ExprId, std::optional<Linear>> known_;
};

}  // namespace

std::optional<Linear> linear_form(const loop::Program& program, ExprId id, size_t loops) {
  return LinearForms(program, loops).of(id);
}

namespace {

class LoopAnalysis {
 public:
  LoopAnalysis(const loop::Program& program, const loop::Stage& stage, size_t row_loops)
      : program_(program), stage_(stage) {
    out_.row_loops = row_loops;
    for (SymInt e : stage.domain) out_.extents.push_back(e);
    out_.domain_rank = out_.extents.size();
    for (SymInt e : stage.reduce) {
      out_.extents.push_back(e);
      out_.terms = out_.terms * e;
    }
    out_.raw.resize(out_.extents.size());
    seen_.resize(program.arena.size());
  }

  StageLoops run() {
    for (const loop::Accumulator& a : stage_.accumulators) visit(a.value);
    for (const loop::Store& s : stage_.stores) {
      visit(s.value);
      std::optional<LinearAccess> access;
      if (s.where == ~0u) access = linear_access(s.at, s.to, out_.domain_rank);
      if (access) access->store = true;
      else {
        out_.computed.push_back(s.to);
        for (ExprId index : s.at) visit(index);
        if (s.where != ~0u) visit(s.where);
      }
      out_.serial = out_.serial || !access || s.mode != loop::Mode::set || repeats(access->at);
      out_.stores.push_back(std::move(access));
    }
    out_.stores_meet = stores_meet();
    find_apart();
    for (size_t i = 0; i < out_.row_loops; ++i) {
      if (out_.extents[i] == SymInt(1)) continue;
      out_.joined.push_back(!out_.rows.empty() && out_.dense(out_.rows.back().last, i));
      out_.rows.push_back({i, i, out_.extents[i]});
    }
    out_.domain = grouped(out_.row_loops, out_.domain_rank);
    out_.reduce = grouped(out_.domain_rank, out_.extents.size());
    return std::move(out_);
  }

 private:
  // Whether iterations of the domain meet in one place.
  bool repeats(const Linear& at) const {
    for (size_t i = 0; i < out_.domain_rank; ++i)
      if (at.by_loop[i] == SymInt(0) && out_.extents[i] != SymInt(1)) return true;
    return false;
  }

  // A loop that is itself an index of whatever is stored: a batch, a channel of which each place is added to.
  void find_apart() {
    out_.apart.assign(out_.domain_rank, true);
    for (const loop::Store& s : stage_.stores)
      for (size_t k = 0; k < out_.domain_rank; ++k)
        out_.apart[k] = out_.apart[k] && std::any_of(s.at.begin(), s.at.end(), [&](ExprId at) {
                          const ExprNode& n = program_.arena[at];
                          return n.fn == Fn::index && static_cast<size_t>(n.integer) == k;
                        });
    for (size_t id = 0; id < seen_.size(); ++id)  // what is read of such memory may be another iteration's
      if (seen_[id] && program_.arena[static_cast<ExprId>(id)].fn == Fn::load)
        for (const loop::Store& s : stage_.stores)
          if (root(s.to) == root(program_.arena[static_cast<ExprId>(id)].buffer))
            out_.apart.assign(out_.domain_rank, false);
  }

  loop::BufferId root(loop::BufferId b) const {
    return program_.buffers[b].view_of == loop::no_buffer ? b : program_.buffers[b].view_of;
  }
  bool stores_meet() const {
    auto plain = [&](size_t i) { return out_.stores[i] && stage_.stores[i].mode == loop::Mode::set; };
    for (size_t i = 0; i < stage_.stores.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (root(stage_.stores[i].to) == root(stage_.stores[j].to) && !(plain(i) && plain(j))) return true;
    return false;
  }

  void visit(ExprId id) {
    if (seen_[id]) return;
    seen_[id] = true;
    const ExprNode& n = program_.arena[id];
    if (n.fn == Fn::index) out_.raw[static_cast<size_t>(n.integer)] = true;
    if (n.fn == Fn::load && n.guard == ~0u) {
      if (auto access = linear_access(n.args, n.buffer, out_.extents.size())) {
        out_.loads.emplace(id, std::move(*access));
        return;
      }
    }
    if (n.fn == Fn::load) out_.computed.push_back(n.buffer);
    for (ExprId a : n.args) visit(a);
    if (n.guard != ~0u) visit(n.guard);
    if (n.otherwise != ~0u) visit(n.otherwise);
  }

  // Whether it stays within the buffer is settled here for all that the loops reach, or left as a condition.
  std::optional<LinearAccess> linear_access(std::span<const ExprId> at, loop::BufferId id, size_t loops_that_run) {
    const loop::Buffer& buffer = program_.buffers[id];
    LinearAccess out;
    out.at.by_loop.resize(out_.extents.size(), SymInt(0));
    std::vector<SymInt> inside;
    std::vector<char> walks(out_.extents.size());
    for (size_t d = 0; d < at.size(); ++d) {
      auto index = linear_form(program_, at[d], out_.extents.size());
      if (!index) return std::nullopt;
      SymInt least = index->base, most = index->base;
      for (size_t i = 0; i < loops_that_run; ++i) {
        SymInt c = index->by_loop[i], last = out_.extents[i] - 1;
        walks[i] = walks[i] || c != SymInt(0);
        if (c.is_int()) (c.as_int() < 0 ? least : most) += c * last;
        else {
          least += sym::min(c, 0) * last;
          most += sym::max(c, 0) * last;
        }
      }
      inside.push_back(sym::logical_and(sym::ge(least, 0), sym::lt(most, buffer.sizes[d])));
      out.at.base += index->base * buffer.strides[d];
      for (size_t i = 0; i < out_.extents.size(); ++i) out.at.by_loop[i] += index->by_loop[i] * buffer.strides[d];
    }
    // A load that does not depend on the reduction may be made where that has no terms.
    SymInt empty = SymInt::boolean(false);
    for (size_t i = 0; i < loops_that_run; ++i)
      if (i < out_.domain_rank || walks[i]) empty = sym::logical_or(empty, sym::eq(out_.extents[i], 0));
    for (size_t d = 0; d < inside.size(); ++d) {
      SymInt condition = sym::logical_or(empty, inside[d]);
      std::optional<bool> known = sym::decide(condition, program_.ranges);
      require(!known || *known, "sizes that do not belong together: dimension ", d, " of ", buffer.name, ", ",
              buffer.dtype, buffer.sizes, ", would be read or written outside of it");
      if (!known && std::find(out_.conditions.begin(), out_.conditions.end(), condition) == out_.conditions.end())
        out_.conditions.push_back(condition);
    }
    return out;
  }

  std::vector<LoopGroup> grouped(size_t from, size_t to) const {
    std::vector<LoopGroup> out;
    for (size_t i = from; i < to; ++i) {
      if (out_.extents[i] == SymInt(1)) continue;
      if (!out.empty() && out_.dense(out.back().last, i)) {
        out.back().last = i;
        out.back().extent = out.back().extent * out_.extents[i];
      } else out.push_back({i, i, out_.extents[i]});
    }
    return out;
  }

  const loop::Program& program_;
  const loop::Stage& stage_;
  StageLoops out_;
  std::vector<char> seen_;  // expressions
};

}  // namespace

StageLoops analyze(const loop::Program& program, const loop::Stage& stage, size_t row_loops) {
  return LoopAnalysis(program, stage, row_loops).run();
}

bool StageLoops::dense(size_t outer, size_t inner) const {
  if (raw[outer] || raw[inner]) return false;
  auto fits = [&](const Linear& at) { return at.by_loop[outer] == at.by_loop[inner] * extents[inner]; };
  for (const auto& [id, access] : loads)
    if (!fits(access.at)) return false;
  for (const auto& access : stores)
    if (access && !fits(access->at)) return false;
  return true;
}

std::optional<size_t> StageLoops::best_lanes() const {
  if (domain.empty()) return std::nullopt;
  if (serial) return domain.size() - 1;
  size_t best = domain.size() - 1;
  int64_t best_score = -1;
  for (size_t g = domain.size(); g-- > 0;) {  // of equals the innermost
    int64_t score = 0;
    auto count = [&](const LinearAccess& a) {
      SymInt step = a.at.by_loop[domain[g].last];
      if (step == SymInt(1)) score += a.store ? 6 : 4;
      else if (step == SymInt(0)) score += 2;
    };
    for (const auto& [id, access] : loads) count(access);
    for (const auto& access : stores)
      if (access) count(*access);
    if (domain[g].extent.is_int() && domain[g].extent.as_int() < 8) score /= 4;  // most lanes would be idle
    if (score > best_score) {
      best = g;
      best_score = score;
    }
  }
  return best;
}

}  // namespace tenon::compile

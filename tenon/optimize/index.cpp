#include "tenon/optimize/index.h"

#include <algorithm>

#include "tenon/base/error.h"
#include "tenon/sym/checked.h"

namespace tenon::optimize {

using loop::Arena;
using loop::BufferId;
using loop::Compute;
using loop::ExprId;
using loop::ExprNode;
using loop::Fn;

Sizes loops_of(const loop::Stage& stage) {
  Sizes loops = stage.domain;
  for (SymInt e : stage.reduce) loops.push_back(e);
  return loops;
}

std::optional<size_t> as_loop(const Arena& arena, ExprId expr) {
  const ExprNode& n = arena[expr];
  if (n.fn != Fn::index) return std::nullopt;
  return static_cast<size_t>(n.integer);
}

bool is_zero(const Arena& arena, ExprId expr) {
  const ExprNode& n = arena[expr];
  return n.fn == Fn::constant && n.type == Compute::i64 && n.integer == 0;
}

std::optional<Strided> strided(const Arena& arena, ExprId id, size_t loops) {
  const ExprNode& n = arena[id];
  if (n.type != Compute::i64) return std::nullopt;
  Strided out;
  out.by_loop = Sizes(loops, 0);
  switch (n.fn) {
    case Fn::constant: out.base = n.integer; return out;
    case Fn::size: out.base = n.size; return out;
    case Fn::index: out.by_loop[static_cast<size_t>(n.integer)] = 1; return out;
    case Fn::add:
    case Fn::sub:
    case Fn::mul: {
      auto a = strided(arena, n.args[0], loops), b = strided(arena, n.args[1], loops);
      if (!a || !b) return std::nullopt;
      auto moves = [](const Strided& s) {
        return std::any_of(s.by_loop.begin(), s.by_loop.end(), [](SymInt e) { return !(e == SymInt(0)); });
      };
      if (n.fn == Fn::mul) {
        if (moves(*b)) std::swap(a, b);
        if (moves(*b)) return std::nullopt;
      }
      auto combined = [&](SymInt x, SymInt y) {
        return n.fn == Fn::add ? x + y : n.fn == Fn::sub ? x - y : x * b->base;
      };
      out.base = combined(a->base, b->base);
      for (size_t k = 0; k < loops; ++k) out.by_loop[k] = combined(a->by_loop[k], b->by_loop[k]);
      return out;
    }
    default: return std::nullopt;
  }
}

std::optional<Strided> strided(const loop::Program& program, BufferId buffer, std::span<const ExprId> at,
                               size_t loops) {
  const loop::Buffer& b = program.buffers[buffer];
  Strided out;
  out.by_loop = Sizes(loops, 0);
  for (size_t d = 0; d < at.size(); ++d) {
    auto index = strided(program.arena, at[d], loops);
    if (!index) return std::nullopt;
    out.base += index->base * b.strides[d];
    for (size_t k = 0; k < loops; ++k) out.by_loop[k] += index->by_loop[k] * b.strides[d];
  }
  return out;
}

namespace {

constexpr int64_t far = int64_t{1} << 40;  // beyond it nothing is proven, so that sums need no checks

struct Interval {
  int64_t lo, hi;
};

std::optional<Interval> bounded(int64_t lo, int64_t hi) {
  if (lo < -far || hi > far) return std::nullopt;
  return Interval{lo, hi};
}

std::optional<Interval> product(Interval a, Interval b) {
  int64_t least = far, most = -far;
  for (int64_t x : {a.lo, a.hi})
    for (int64_t y : {b.lo, b.hi}) {
      if (std::abs(x) > (1 << 20) && std::abs(y) > (1 << 20)) return std::nullopt;
      int64_t p = sym::checked_mul(x, y);
      least = std::min(least, p);
      most = std::max(most, p);
    }
  return bounded(least, most);
}

int64_t floored(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

std::optional<Interval> interval(const Arena& arena, ExprId id, const Sizes& loops, int depth = 0) {
  const ExprNode& n = arena[id];
  if (n.type != Compute::i64 || depth > 12) return std::nullopt;
  auto operand = [&](size_t i) { return interval(arena, n.args[i], loops, depth + 1); };
  switch (n.fn) {
    case Fn::constant: return bounded(n.integer, n.integer);
    case Fn::index: {
      SymInt extent = loops[static_cast<size_t>(n.integer)];
      if (!extent.is_int()) return std::nullopt;
      return bounded(0, std::max<int64_t>(extent.as_int() - 1, 0));
    }
    case Fn::add:
    case Fn::sub:
    case Fn::mul:
    case Fn::min:
    case Fn::max:
    case Fn::floor_div:
    case Fn::remainder: {
      auto a = operand(0), b = operand(1);
      if (!a || !b) return std::nullopt;
      if (n.fn == Fn::add) return bounded(a->lo + b->lo, a->hi + b->hi);
      if (n.fn == Fn::sub) return bounded(a->lo - b->hi, a->hi - b->lo);
      if (n.fn == Fn::mul) return product(*a, *b);
      if (n.fn == Fn::min) return bounded(std::min(a->lo, b->lo), std::min(a->hi, b->hi));
      if (n.fn == Fn::max) return bounded(std::max(a->lo, b->lo), std::max(a->hi, b->hi));
      if (b->lo != b->hi || b->lo <= 0) return std::nullopt;
      if (n.fn == Fn::floor_div) return bounded(floored(a->lo, b->lo), floored(a->hi, b->lo));
      return bounded(0, b->lo - 1);
    }
    case Fn::select: {
      auto a = operand(1), b = operand(2);
      if (!a || !b) return std::nullopt;
      return bounded(std::min(a->lo, b->lo), std::max(a->hi, b->hi));
    }
    default: return std::nullopt;
  }
}

/// base + sum of by_loop[k] * loop k.
struct Affine {
  int64_t base = 0;
  SmallVector<int64_t, 8> by_loop;
};

std::optional<Affine> affine(const Arena& arena, ExprId id, size_t loops, int depth = 0) {
  const ExprNode& n = arena[id];
  if (n.type != Compute::i64 || depth > 12) return std::nullopt;
  Affine out;
  out.by_loop.resize(loops, 0);
  switch (n.fn) {
    case Fn::constant:
      if (std::abs(n.integer) > far) return std::nullopt;
      out.base = n.integer;
      return out;
    case Fn::index: out.by_loop[static_cast<size_t>(n.integer)] = 1; return out;
    case Fn::add:
    case Fn::sub:
    case Fn::mul: {
      auto a = affine(arena, n.args[0], loops, depth + 1), b = affine(arena, n.args[1], loops, depth + 1);
      if (!a || !b) return std::nullopt;
      auto is_constant = [](const Affine& f) {
        return std::all_of(f.by_loop.begin(), f.by_loop.end(), [](int64_t c) { return c == 0; });
      };
      if (n.fn == Fn::mul) {
        if (!is_constant(*b)) std::swap(a, b);
        if (!is_constant(*b)) return std::nullopt;
      }
      auto combine = [&](int64_t x, int64_t y) {
        return n.fn == Fn::add ? x + y : n.fn == Fn::sub ? x - y : sym::checked_mul(x, b->base);
      };
      if (n.fn == Fn::mul && std::abs(b->base) > (1 << 30)) return std::nullopt;
      a->base = combine(a->base, b->base);
      bool fits = std::abs(a->base) <= far;
      for (size_t k = 0; k < loops; ++k) {
        a->by_loop[k] = combine(a->by_loop[k], b->by_loop[k]);
        fits = fits && std::abs(a->by_loop[k]) <= (1 << 30);
      }
      return fits ? a : std::nullopt;
    }
    default: return std::nullopt;
  }
}

loop::Expr spelled(Arena& arena, const Affine& f) {
  loop::Expr sum = loop::constant(arena, f.base, Compute::i64);
  for (size_t k = 0; k < f.by_loop.size(); ++k) {
    if (f.by_loop[k] == 0) continue;
    loop::Expr index(&arena, arena.add({.fn = Fn::index, .type = Compute::i64, .integer = static_cast<int64_t>(k)}));
    sum = f.base == 0 && is_zero(arena, sum.id) ? index * f.by_loop[k] : sum + index * f.by_loop[k];
  }
  return sum;
}

/// index = quotient * size + rest, 0 <= rest < size, without a division.
bool divided(const Affine& index, int64_t size, const Sizes& loops, Affine& quotient, Affine& rest) {
  quotient.by_loop.resize(loops.size(), 0);
  rest.by_loop.resize(loops.size(), 0);
  quotient.base = floored(index.base, size);
  rest.base = index.base - quotient.base * size;
  int64_t most = rest.base;
  for (size_t k = 0; k < loops.size(); ++k) {
    int64_t by = index.by_loop[k];
    if (by % size == 0) {
      quotient.by_loop[k] = by / size;
      continue;
    }
    if (by < 0 || !loops[k].is_int()) return false;
    rest.by_loop[k] = by;
    if (loops[k].as_int() > far || by > far / std::max<int64_t>(1, loops[k].as_int())) return false;
    most += by * std::max<int64_t>(loops[k].as_int() - 1, 0);
    if (most >= size) return false;
  }
  return true;
}

/// What one part of a view's map does to sizes, and back to indices.
class Backward {
 public:
  Backward(Arena& arena, const Sizes& loops) : arena_(arena), loops_(loops) {}

  static std::optional<Sizes> forward(const remap::Part& part, Sizes sizes) {
    if (auto* p = std::get_if<remap::Permute>(&part)) {
      Sizes out;
      for (size_t d : p->dims) out.push_back(sizes[d]);
      return out;
    }
    if (auto* s = std::get_if<remap::Slice>(&part)) {
      sizes[s->dim] = s->size;
      return sizes;
    }
    if (auto* e = std::get_if<remap::Expand>(&part)) return e->sizes;
    if (auto* r = std::get_if<remap::Reshape>(&part)) return r->sizes;
    if (auto* d = std::get_if<remap::Diagonal>(&part)) {
      sizes.erase(std::max(d->dim1, d->dim2));
      sizes.erase(std::min(d->dim1, d->dim2));
      sizes.push_back(d->size);
      return sizes;
    }
    if (auto* u = std::get_if<remap::Unfold>(&part)) {
      if (sizes.empty()) return std::nullopt;
      sizes[u->dim] = sym::floor_div(sizes[u->dim] - u->size, u->step) + 1;
      sizes.push_back(u->size);
      return sizes;
    }
    if (std::holds_alternative<remap::Stop>(part)) return sizes;
    return std::nullopt;  // of the storage, or the bytes
  }

  /// From the index of the part's result to that of its base.
  bool through(const remap::Part& part, const Sizes& base, const Sizes& result, std::vector<ExprId>& at) {
    std::vector<ExprId> out(base.size(), number(0));
    if (auto* p = std::get_if<remap::Permute>(&part)) {
      for (size_t i = 0; i < p->dims.size(); ++i) out[p->dims[i]] = at[i];
    } else if (auto* s = std::get_if<remap::Slice>(&part)) {
      out = at;
      out[s->dim] = (size_expr(arena_, s->start) + loop::Expr(&arena_, at[s->dim]) * size_expr(arena_, s->step)).id;
    } else if (std::holds_alternative<remap::Expand>(part)) {
      size_t fresh = result.size() - base.size();
      for (size_t d = 0; d < base.size(); ++d)
        if (!(base[d] == SymInt(1))) {
          if (!(base[d] == result[fresh + d])) return false;
          out[d] = at[fresh + d];
        }
    } else if (std::holds_alternative<remap::Reshape>(part)) {
      return reshape(base, result, at);
    } else if (auto* d = std::get_if<remap::Diagonal>(&part)) {
      if (!d->offset.is_int()) return false;
      size_t next = 0;
      for (size_t k = 0; k < base.size(); ++k)
        if (k != d->dim1 && k != d->dim2) out[k] = at[next++];
      loop::Expr along(&arena_, at.back());
      out[d->dim1] = (along + std::max<int64_t>(-d->offset.as_int(), 0)).id;
      out[d->dim2] = (along + std::max<int64_t>(d->offset.as_int(), 0)).id;
    } else if (auto* u = std::get_if<remap::Unfold>(&part)) {
      for (size_t k = 0; k < base.size(); ++k) out[k] = at[k];
      out[u->dim] = (loop::Expr(&arena_, at[u->dim]) * size_expr(arena_, u->step) + loop::Expr(&arena_, at.back())).id;
    } else if (std::holds_alternative<remap::Stop>(part)) {
      out = at;
    } else return false;
    at = std::move(out);
    return true;
  }

 private:
  ExprId number(int64_t value) { return loop::constant(arena_, value, Compute::i64).id; }

  // Both shapes are cut into the shortest groups of dimensions of equal extent; dimensions of size 1 are in none.
  bool reshape(const Sizes& base, const Sizes& result, std::vector<ExprId>& at) {
    std::vector<ExprId> out(base.size(), number(0));
    auto next = [](const Sizes& sizes, size_t i) {
      while (i < sizes.size() && sizes[i] == SymInt(1)) ++i;
      return i;
    };
    size_t b = next(base, 0), r = next(result, 0);
    while (b < base.size() && r < result.size()) {
      if (base[b] == result[r]) {
        out[b] = at[r];
      } else {
        size_t b_end = b + 1, r_end = r + 1;
        SymInt base_count = base[b], result_count = result[r];
        while (!(base_count == result_count)) {
          bool numbers = base_count.is_int() && result_count.is_int();
          if (numbers && base_count.as_int() < result_count.as_int()) {
            if (b_end == base.size()) return false;
            base_count = base_count * base[b_end++];
          } else if (numbers) {
            if (r_end == result.size()) return false;
            result_count = result_count * result[r_end++];
          } else if (b_end == b + 1 && r_end < result.size()) {
            result_count = result_count * result[r_end++];  // symbols: one dimension cut into several
          } else return false;
        }
        if (!group({base.begin() + b, b_end - b}, {result.begin() + r, r_end - r}, &out[b], &at[r])) return false;
        b = b_end - 1;
        r = r_end - 1;
      }
      b = next(base, b + 1);
      r = next(result, r + 1);
    }
    if (b != base.size() || r != result.size()) return false;
    at = std::move(out);
    return true;
  }

  bool group(std::span<const SymInt> base, std::span<const SymInt> result, ExprId* out, const ExprId* at) {
    loop::Expr linear(&arena_, at[0]);
    for (size_t d = 1; d < result.size(); ++d)
      linear = linear * size_expr(arena_, result[d]) + loop::Expr(&arena_, at[d]);
    if (base.size() == 1) {
      auto f = affine(arena_, linear.id, loops_.size());
      out[0] = f ? spelled(arena_, *f).id : linear.id;
      return true;
    }
    auto rest = affine(arena_, linear.id, loops_.size());
    if (!rest) return false;
    for (size_t d = base.size(); d-- > 1;) {
      Affine quotient, within;
      if (!base[d].is_int() || base[d].as_int() <= 0 || !divided(*rest, base[d].as_int(), loops_, quotient, within))
        return false;
      out[d] = spelled(arena_, within).id;
      rest = quotient;
    }
    out[0] = spelled(arena_, *rest).id;
    return true;
  }

  Arena& arena_;
  const Sizes& loops_;
};

}  // namespace

bool within(const Arena& arena, ExprId index, SymInt size, const Sizes& loops) {
  if (auto k = as_loop(arena, index); k && loops[*k] == size) return true;
  if (size.is_int()) {
    auto values = interval(arena, index, loops);
    return values && values->lo >= 0 && values->hi < size.as_int();
  }
  // A loop of symbolic extent and a constant: their sum must not pass the size, whatever the symbols are.
  auto f = affine(arena, index, loops.size());
  if (!f || f->base < 0) return false;
  SymInt most = f->base;
  for (size_t k = 0; k < loops.size(); ++k) {
    if (f->by_loop[k] < 0) return false;
    if (f->by_loop[k] > 0) most = most + (loops[k] - 1) * f->by_loop[k];
  }
  SymInt beyond = most - size;
  return beyond.is_int() && beyond.as_int() < 0;
}

std::optional<std::vector<ExprId>> root_index(loop::Program& program, BufferId buffer, std::span<const ExprId> at,
                                              const Sizes& loops) {
  std::vector<ExprId> index(at.begin(), at.end());
  const loop::Buffer& view = program.buffers[buffer];
  if (view.view_of == loop::no_buffer || view.map.parts.empty()) return index;
  std::vector<Sizes> sizes{program.buffers[view.view_of].sizes};
  for (const remap::Part& part : view.map.parts) {
    auto next = Backward::forward(part, sizes.back());
    if (!next) return std::nullopt;
    sizes.push_back(*next);
  }
  Backward backward(program.arena, loops);
  for (size_t i = view.map.parts.size(); i-- > 0;)
    if (!backward.through(view.map.parts[i], sizes[i], sizes[i + 1], index)) return std::nullopt;
  return index;
}

}  // namespace tenon::optimize

#include "tenon/compile/stage_reduction.h"

#include <algorithm>
#include <limits>

#include "tenon/base/error.h"
#include "tenon/compile/math.h"

namespace tenon::compile {

using Reduce = loop::Combine;

static bool gives_position(Reduce r) { return r == Reduce::argmin || r == Reduce::argmax; }

/// Whether lanes do better over the domain than over the terms.
static bool in_columns(const loop::Stage& stage, const StageLoops& loops) {
  if (!loops.terms.is_int() || loops.terms.as_int() > int64_t{chunk_terms} * most_column_chunks) return false;
  if (loops.reduce.empty() || loops.stores_meet || loops.serial) return false;
  for (const loop::Accumulator& a : stage.accumulators)
    if (gives_position(a.combine)) return false;
  auto lanes = loops.best_lanes();
  if (!lanes || (loops.domain[*lanes].extent.is_int() && loops.domain[*lanes].extent.as_int() < 16)) return false;
  bool together = false;
  for (const auto& load : loops.loads) {
    const auto& access = load.second;
    SymInt by_lane = access.at.by_loop[loops.domain[*lanes].last];
    bool by_term = std::any_of(loops.reduce.begin(), loops.reduce.end(),
                               [&](const LoopGroup& g) { return access.at.by_loop[g.last] != SymInt(0); });
    if (!by_term || by_lane == SymInt(0)) continue;
    if (by_lane != SymInt(1)) return false;
    together = true;
  }
  return together && loops.computed.empty();
}

Terms how_many(const loop::Stage& stage, const StageLoops& loops, const sym::Ranges& ranges) {
  sym::Range range = sym::range_of(loops.terms, ranges);
  if (range.hi <= short_reduction) return Terms::few;
  if (range.lo <= short_reduction) return Terms::unknown;
  return in_columns(stage, loops) ? Terms::columns : Terms::many;
}

StageReduction::StageReduction(Builder& b, const loop::Stage& stage, const StageLoops& loops, StageValues& values,
                               bool fixed_size)
    : b_(b), stage_(stage), loops_(loops), values_(values), fixed_size_(fixed_size && loops.terms.is_int()) {
  for (const loop::Accumulator& a : stage.accumulators) {
    Slot slot{carried_, type_of(a.type), gives_position(a.combine)};
    if (slot.position && slot.type == Type::b1) slot.type = Type::i64;
    if (a.combine == Reduce::any || a.combine == Reduce::all) slot.type = Type::b1;
    carried_ += slot.position ? 2 : 1;
    slots_.push_back(slot);
  }
}

/// How lanes meet; booleans know and and or alone.
static Combine meeting(Reduce r, Type type) {
  bool logical = type == Type::b1;
  switch (r) {
    case Reduce::sum: return logical ? Combine::any : Combine::add;
    case Reduce::product: return logical ? Combine::all : Combine::mul;
    case Reduce::min: return logical ? Combine::all : Combine::min;
    case Reduce::max: return logical ? Combine::any : Combine::max;
    case Reduce::any: return Combine::any;
    case Reduce::all: return Combine::all;
    case Reduce::argmin: return Combine::argmin;
    case Reduce::argmax: return Combine::argmax;
  }
  unreachable();
}

// What a reduction starts from. `exact`: nothing is lost when the first term is added to it, so a sum starts at -0.
Vals StageReduction::initial(bool exact) const {
  Vals out;
  for (size_t k = 0; k < slots_.size(); ++k) {
    Type type = slots_[k].type;
    Combine how = meeting(stage_.accumulators[k].combine, type);
    constexpr double infinity = std::numeric_limits<double>::infinity();
    auto end = [&](bool highest) {
      if (is_float(type)) return b_.constant(type, highest ? infinity : -infinity);
      using Limits = std::numeric_limits<int64_t>;
      return b_.integer(type, highest ? Limits::max() : Limits::min());
    };
    switch (how) {
      case Combine::add:
        out.push_back(is_float(type) ? b_.constant(type, exact ? -0.0 : 0.0) : b_.integer(type, 0));
        break;
      case Combine::mul: out.push_back(is_float(type) ? b_.constant(type, 1) : b_.integer(type, 1)); break;
      case Combine::any: out.push_back(b_.integer(type, 0)); break;
      case Combine::all: out.push_back(b_.integer(type, 1)); break;
      case Combine::min:
      case Combine::argmin: out.push_back(end(true)); break;
      case Combine::max:
      case Combine::argmax: out.push_back(end(false)); break;
      case Combine::position: unreachable();
    }
    if (slots_[k].position) out.push_back(b_.integer(Type::i64, 0));
  }
  return out;
}

Val StageReduction::combined(size_t k, Val a, Val b) const {
  switch (meeting(stage_.accumulators[k].combine, slots_[k].type)) {
    case Combine::add: return a + b;
    case Combine::mul: return a * b;
    case Combine::any: return a | b;
    case Combine::all: return a & b;
    case Combine::min:
    case Combine::max: {
      bool least = stage_.accumulators[k].combine == Reduce::min;
      Val m = binary(least ? Op::min : Op::max, b, a);  // the earlier of equals
      return is_float(a.type()) ? select(b != b, b, m) : m;
    }
    case Combine::argmin:
    case Combine::argmax:
    case Combine::position: break;
  }
  unreachable();
}

Val StageReduction::displaces(size_t k, Val a, Val b) const {
  Val better = stage_.accumulators[k].combine == Reduce::argmin ? b < a : b > a;
  return is_float(a.type()) ? (a == a) & ((b != b) | better) : better;
}

Vals StageReduction::merged(const Vals& a, const Vals& b) const {
  Vals out(carried_);
  for (size_t k = 0; k < slots_.size(); ++k) {
    size_t at = slots_[k].at;
    if (!slots_[k].position) {
      out[at] = combined(k, a[at], b[at]);
      continue;
    }
    Val takes = displaces(k, a[at], b[at]);
    out[at] = select(takes, b[at], a[at]);
    out[at + 1] = select(takes, b[at + 1], a[at + 1]);
  }
  return out;
}

Vals StageReduction::with_term(const Vals& so_far, Val position) {
  Vals term(carried_);
  for (size_t k = 0; k < slots_.size(); ++k) {
    term[slots_[k].at] = convert(values_.value(stage_.accumulators[k].value), slots_[k].type);
    if (slots_[k].position) term[slots_[k].at + 1] = position;
  }
  return merged(so_far, term);
}

Vals StageReduction::nest(size_t depth, const Vals& so_far, Val position, const Val* enabled) {
  if (depth == loops_.reduce.size()) return with_term(so_far, position);
  const LoopGroup& group = loops_.reduce[depth];
  Val extent = values_.size(group.extent);
  Val end = depth == 0 && enabled ? select(*enabled, extent, 0) : extent;
  std::vector<Carried> carried;
  for (Val v : so_far) carried.push_back({v});
  return b_.loop(0, end, carried, [&](Val i, const Vals& state) -> Vals {
    auto known = values_.save();
    values_.enter(group, i);
    Vals next = nest(depth + 1, state, position * extent + i, enabled);
    values_.leave(group);
    values_.restore(std::move(known));
    return next;
  });
}

Vals StageReduction::one_by_one(const Val* enabled) {
  auto known = values_.save();
  Vals out = nest(0, initial(true), b_.integer(Type::i64, 0), enabled);
  values_.restore(std::move(known));
  if (fixed_size_ && loops_.terms.as_int() > 0) return out;
  Vals nothing = initial(false);  // a sum of no terms is 0, not -0
  Val empty = values_.size(loops_.terms) == 0;
  for (const Slot& s : slots_) out[s.at] = select(empty, nothing[s.at], out[s.at]);
  return out;
}

Vals StageReduction::chunk(Val start, Val end) {
  std::vector<Carried> carried;
  Vals from = initial(false);
  for (size_t k = 0; k < slots_.size(); ++k) {
    carried.push_back({from[slots_[k].at], meeting(stage_.accumulators[k].combine, slots_[k].type)});
    if (slots_[k].position) carried.push_back({start, Combine::position});
  }
  return b_.lanes(start, end, chunk_ways, carried, [&](Val position, const Vals& state) -> Vals {
    auto known = values_.save();
    values_.enter_lanes(loops_.reduce, position);
    Vals next = with_term(state, position);
    values_.leave_lanes(loops_.reduce);
    values_.restore(std::move(known));
    return next;
  });
}

static Element stored_as(Type t) {
  return t == Type::b1    ? Element::boolean
         : t == Type::i64 ? Element::i64
         : t == Type::f32 ? Element::f32
                          : Element::f64;
}

// Partial results of chunks wait in scratch memory, merged pairwise as they come: an entry for every bit of the count.
Vals StageReduction::in_chunks(const Val* disabled) {
  Val terms = values_.size(loops_.terms), zero = b_.integer(Type::i64, 0);
  if (fixed_size_ && loops_.terms.as_int() <= chunk_terms) return chunk(zero, terms);
  std::vector<uint32_t> levels(slots_.size());
  for (size_t k = 0; k < slots_.size(); ++k) {
    if (slots_[k].position) continue;
    levels[k] = b_.scratch(text("levels", k), stored_as(slots_[k].type), 64);
  }
  Val chunks = (terms + (chunk_terms - 1)) / b_.integer(Type::i64, chunk_terms);
  if (disabled) chunks = select(*disabled, 0, chunks);
  Vals start = initial(false);
  std::vector<Carried> carried{{zero}};  // how many entries wait; then the best so far, for argmin and argmax
  for (const Slot& s : slots_)
    if (s.position) {
      carried.push_back({start[s.at]});
      carried.push_back({start[s.at + 1]});
    }
  Vals done = b_.loop(0, chunks, carried, [&](Val c, const Vals& state) -> Vals {
    Val first = c * b_.integer(Type::i64, chunk_terms);
    Vals partial = chunk(first, binary(Op::min, first + chunk_terms, terms));
    Val odd = (c & 1) != 0;
    Val complete = b_.loop_while(0, 64, {{odd}, {c}, {zero}}, [&](Val, const Vals& s) -> Vals {
      Val rest = s[1] >> 1;
      return {(rest & 1) != 0, rest, s[2] + 1};
    })[2];
    Val waiting = state[0];
    Vals next{waiting - complete + 1};
    for (size_t k = 0; k < slots_.size(); ++k) {
      Val value = partial[slots_[k].at];
      if (slots_[k].position) {
        size_t at = next.size();
        Val takes = displaces(k, state[at], value);
        next.push_back(select(takes, value, state[at]));
        next.push_back(select(takes, partial[slots_[k].at + 1], state[at + 1]));
        continue;
      }
      value = b_.loop(0, complete, {{value}}, [&](Val i, const Vals& s) -> Vals {
        Val earlier = b_.load({levels[k], waiting - 1 - i});
        return {combined(k, earlier, s[0])};
      })[0];
      b_.store({levels[k], waiting - complete}, value);
    }
    return next;
  });
  Val waiting = done[0];
  Vals out(carried_);
  size_t next = 1;
  for (size_t k = 0; k < slots_.size(); ++k) {
    size_t at = slots_[k].at;
    if (slots_[k].position) {
      out[at] = done[next++];
      out[at + 1] = done[next++];
      continue;
    }
    Val any = waiting > 0;
    Val last = b_.load({levels[k], waiting - 1}, any, start[at]);
    out[at] = b_.loop(1, waiting, {{last}}, [&](Val i, const Vals& s) -> Vals {
      Val earlier = b_.load({levels[k], waiting - 1 - i});
      return {combined(k, earlier, s[0])};
    })[0];
  }
  return out;
}

Vals StageReduction::indices(Val position) {
  const std::vector<LoopGroup>& groups = loops_.reduce;
  Vals at(groups.size());
  for (size_t g = groups.size(); g-- > 1;) {
    Val extent = values_.size(groups[g].extent), quotient = position / extent;
    at[g] = position - quotient * extent;
    position = quotient;
  }
  at[0] = position;
  return at;
}

// The same partial results as over lanes, eight at a time: as many as any target has registers for.
Vals StageReduction::column_chunk(int64_t first, int64_t count) {
  constexpr int at_once = 8;
  const int64_t blocks = count / chunk_ways, rest = count % chunk_ways;
  const std::vector<LoopGroup>& groups = loops_.reduce;
  // Terms from `base` on, which is a multiple of at_once, stand in one row of the innermost loop.
  const bool one_row =
      groups.size() == 1 || (groups.back().extent.is_int() && groups.back().extent.as_int() % at_once == 0);
  auto with = [&](const Vals& so_far, const Vals& row, Val base, int j) {
    Vals at = row;
    if (one_row) at.back() = at.back() + b_.integer(Type::i64, j);
    else at = indices(base + b_.integer(Type::i64, j));
    auto known = values_.save();
    for (size_t g = 0; g < groups.size(); ++g) values_.enter(groups[g], at[g]);
    Vals next = with_term(so_far, at.back());
    for (const LoopGroup& g : groups) values_.leave(g);
    values_.restore(std::move(known));
    return next;
  };
  auto partial = [&](int from) {
    std::vector<Vals> out(at_once, initial(false));
    if (blocks > 0) {
      std::vector<Carried> carried;
      for (const Vals& v : out)
        for (Val x : v) carried.push_back({x});
      Vals done = b_.loop(0, b_.integer(Type::i64, blocks), carried, [&](Val block, const Vals& state) -> Vals {
        Val base = block * b_.integer(Type::i64, chunk_ways) + b_.integer(Type::i64, first + from);
        Vals next, row = indices(base);
        for (int j = 0; j < at_once; ++j) {
          auto begin = state.begin() + static_cast<ptrdiff_t>(static_cast<size_t>(j) * carried_);
          for (Val x : with(Vals(begin, begin + static_cast<ptrdiff_t>(carried_)), row, base, j)) next.push_back(x);
        }
        return next;
      });
      for (size_t j = 0; j < at_once; ++j)
        for (size_t k = 0; k < carried_; ++k) out[j][k] = done[j * carried_ + k];
    }
    Val base = b_.integer(Type::i64, first + blocks * chunk_ways + from);
    for (int j = 0; j < at_once && from + j < rest; ++j)
      out[static_cast<size_t>(j)] = with(out[static_cast<size_t>(j)], indices(base), base, j);
    return out;
  };
  auto meet = [&](std::vector<Vals> a, const std::vector<Vals>& b) {
    for (size_t j = 0; j < b.size(); ++j) a[j] = merged(a[j], b[j]);
    return a;
  };
  // Copy j meets copy j + 16, then j + 8, and so on.
  auto tree = [&](auto&& self, int from, int stride) -> std::vector<Vals> {
    if (stride == chunk_ways) return partial(from);
    std::vector<Vals> near = self(self, from, stride * 2);
    return meet(std::move(near), self(self, from + stride, stride * 2));
  };
  std::vector<Vals> left = tree(tree, 0, at_once);
  for (size_t width = at_once / 2; width > 0; width /= 2) {
    std::vector<Vals> far(left.begin() + static_cast<ptrdiff_t>(width), left.end());
    left.resize(width);
    left = meet(std::move(left), far);
  }
  return left[0];
}

// Chunks are merged pairwise as they come, as in_chunks does.
Vals StageReduction::in_columns() {
  std::vector<Vals> levels;
  const int64_t terms = loops_.terms.as_int();
  for (int64_t first = 0, chunk = 0; first < terms; first += chunk_terms, ++chunk) {
    Vals value = column_chunk(first, std::min<int64_t>(chunk_terms, terms - first));
    for (int64_t carry = chunk; carry & 1; carry >>= 1) {
      value = merged(levels.back(), value);
      levels.pop_back();
    }
    levels.push_back(std::move(value));
  }
  Vals value = levels.back();
  for (size_t i = levels.size() - 1; i-- > 0;) value = merged(levels[i], value);
  return value;
}

int64_t StageReduction::streamed_lanes() const {
  int64_t bytes = 0;
  for (const Slot& s : slots_) bytes += chunk_ways * static_cast<int64_t>(bytes_of(stored_as(s.type)));
  return most_streamed_bytes / bytes / 32 * 32;
}

bool StageReduction::streams(const LoopGroup& group) const {
  constexpr int64_t long_row = 64, long_run = 128;
  if (slots_.size() != 1 || !group.extent.is_int() || group.extent.as_int() < long_row) return false;
  return streamed_lanes() >= std::min(group.extent.as_int(), long_run);
}

// Chunks are merged as in_columns does it: results that wait have a row in scratch memory each.
void StageReduction::emit_streamed(const LoopGroup& group, Val from, Val to, int ways,
                                   const std::function<void()>& store) {
  const int64_t width = std::min((group.extent.as_int() + 15) / 16 * 16, streamed_lanes());
  const int64_t terms = loops_.terms.as_int(), chunks = (terms + chunk_terms - 1) / chunk_terms;
  int64_t rows = 0;  // of results that wait
  while (chunks > 1 && chunks >> rows != 0) ++rows;
  std::vector<uint32_t> partial, waiting;
  for (size_t k = 0; k < slots_.size(); ++k) {
    const Element element = stored_as(slots_[k].type);
    partial.push_back(b_.scratch(text("partial", k), element, static_cast<uint64_t>(chunk_ways * width)));
    if (rows > 0) waiting.push_back(b_.scratch(text("waiting", k), element, static_cast<uint64_t>(rows * width)));
  }
  Val wide = b_.integer(Type::i64, width), tiles = (to - from + (wide - 1)) / wide;
  b_.loop(0, tiles, {}, [&](Val tile, const Vals&) -> Vals {
    Val first = from + tile * wide, last = binary(Op::min, first + wide, to);
    auto place = [&](uint32_t memory, Val row) { return Place{memory, row * wide - first, true}; };
    auto row_of = [&](const std::vector<uint32_t>& memory, int64_t row) {
      Vals out;
      for (uint32_t m : memory) out.push_back(b_.load(place(m, b_.integer(Type::i64, row))));
      return out;
    };
    auto over_lanes = [&](int together, const std::function<void()>& body) {
      b_.lanes(first, last, together, {}, [&](Val i, const Vals&) -> Vals {
        auto known = values_.save();
        values_.enter_lanes({&group, 1}, i);
        body();
        values_.leave_lanes({&group, 1});
        values_.restore(std::move(known));
        return {};
      });
    };
    // `together` terms from `begin` + `together` * block on, in one loop over lanes.
    auto add_terms = [&](int64_t begin, int64_t lower, int64_t upper, int64_t together, bool is_first) {
      Val lo = b_.integer(Type::i64, lower / together), hi = b_.integer(Type::i64, upper / together);
      b_.loop(lo, hi, {}, [&](Val block, const Vals&) -> Vals {
        auto known = values_.save();
        Val position = block * b_.integer(Type::i64, together);
        Val row = is_first ? position : position & b_.integer(Type::i64, chunk_ways - 1);
        std::vector<Vals> at;
        for (int64_t j = 0; j < together; ++j) at.push_back(indices(position + b_.integer(Type::i64, begin + j)));
        over_lanes(ways, [&] {
          values_.load_early(stage_.accumulators);
          for (int64_t j = 0; j < together; ++j) {
            auto of_lane = values_.save();
            for (size_t g = 0; g < at[0].size(); ++g) values_.enter(loops_.reduce[g], at[static_cast<size_t>(j)][g]);
            Val own = row + b_.integer(Type::i64, j);
            Vals so_far = initial(false);
            if (!is_first)
              for (size_t k = 0; k < slots_.size(); ++k) so_far[k] = b_.load(place(partial[k], own));
            Vals next = with_term(so_far, position);
            for (size_t k = 0; k < slots_.size(); ++k) b_.store(place(partial[k], own), next[k]);
            for (const LoopGroup& g : loops_.reduce) values_.leave(g);
            values_.restore(std::move(of_lane));
          }
        });
        values_.restore(std::move(known));
        return {};
      });
    };
    int64_t depth = 0;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int64_t begin = chunk * chunk_terms, count = std::min<int64_t>(chunk_terms, terms - begin);
      const int64_t once = std::min<int64_t>(count, chunk_ways);
      constexpr int64_t together = 4;
      const int64_t whole = count / together * together;
      if (once == chunk_ways) add_terms(begin, 0, once, together, true);
      else add_terms(begin, 0, once, 1, true);
      if (whole > once) add_terms(begin, once, whole, together, false);
      if (count > std::max(whole, once)) add_terms(begin, std::max(whole, once), count, 1, false);
      // Copy j meets copy j + 16, then j + 8, and so on.
      auto met = [&](auto&& self, int64_t j, int64_t stride) -> Vals {
        if (stride == chunk_ways) return j < once ? row_of(partial, j) : initial(false);
        Vals near = self(self, j, stride * 2);
        return merged(near, self(self, j + stride, stride * 2));
      };
      const bool is_last = chunk + 1 == chunks;
      over_lanes(16, [&] {
        Vals value = met(met, 0, 1);
        for (int64_t carry = chunk; is_last ? depth > 0 : (carry & 1) != 0; carry >>= 1)
          value = merged(row_of(waiting, --depth), value);
        if (is_last) {
          tell(value);
          store();
        } else {
          for (size_t k = 0; k < slots_.size(); ++k)
            b_.store(place(waiting[k], b_.integer(Type::i64, depth)), value[k]);
          ++depth;
        }
      });
    }
    return {};
  });
}

void StageReduction::tell(const Vals& results) {
  for (size_t k = 0; k < slots_.size(); ++k) {
    const Slot& s = slots_[k];
    const Val value = results[s.position ? s.at + 1 : s.at];
    values_.set_accumulated(k, s.position ? value : convert(value, type_of(stage_.accumulators[k].type)));
  }
}

void StageReduction::emit(Terms terms) {
  values_.load_early(stage_.accumulators);
  Vals out;
  if (terms == Terms::few) out = one_by_one(nullptr);
  else if (terms == Terms::many) out = in_chunks(nullptr);
  else if (terms == Terms::columns) out = in_columns();
  else {
    Val few = values_.size(loops_.terms) <= short_reduction;
    Vals a = one_by_one(&few), b = in_chunks(&few);
    for (size_t i = 0; i < carried_; ++i) out.push_back(select(few, a[i], b[i]));
  }
  tell(out);
}

}  // namespace tenon::compile

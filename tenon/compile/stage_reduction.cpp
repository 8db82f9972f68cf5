#include "tenon/compile/stage_reduction.h"

#include <limits>

#include "tenon/base/error.h"
#include "tenon/compile/math.h"

namespace tenon::compile {

using Reduce = loop::Combine;

static bool gives_position(Reduce r) { return r == Reduce::argmin || r == Reduce::argmax; }

Terms how_many(const StageLoops& loops, const sym::Ranges& ranges) {
  sym::Range range = sym::range_of(loops.terms, ranges);
  if (range.hi <= short_reduction) return Terms::few;
  return range.lo > short_reduction ? Terms::many : Terms::unknown;
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

// Partial results of chunks wait in scratch memory, merged pairwise as they come: an entry for every bit of the count.
Vals StageReduction::in_chunks(const Val* disabled) {
  Val terms = values_.size(loops_.terms), zero = b_.integer(Type::i64, 0);
  if (fixed_size_ && loops_.terms.as_int() <= chunk_terms) return chunk(zero, terms);
  std::vector<uint32_t> levels(slots_.size());
  for (size_t k = 0; k < slots_.size(); ++k) {
    if (slots_[k].position) continue;
    Type t = slots_[k].type;
    Element element = t == Type::b1    ? Element::boolean
                      : t == Type::i64 ? Element::i64
                      : t == Type::f32 ? Element::f32
                                       : Element::f64;
    levels[k] = b_.scratch(text("levels", k), element, 64);
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
    Val last = b_.load({levels[k], waiting - 1}, waiting > 0, start[at]);
    out[at] = b_.loop(1, waiting, {{last}}, [&](Val i, const Vals& s) -> Vals {
      Val earlier = b_.load({levels[k], waiting - 1 - i});
      return {combined(k, earlier, s[0])};
    })[0];
  }
  return out;
}

void StageReduction::emit(Terms terms) {
  for (const loop::Accumulator& a : stage_.accumulators) values_.load_early(a.value);
  Vals out;
  if (terms == Terms::few) out = one_by_one(nullptr);
  else if (terms == Terms::many) out = in_chunks(nullptr);
  else {
    Val few = values_.size(loops_.terms) <= short_reduction;
    Vals a = one_by_one(&few), b = in_chunks(&few);
    for (size_t i = 0; i < carried_; ++i) out.push_back(select(few, a[i], b[i]));
  }
  for (size_t k = 0; k < slots_.size(); ++k) {
    const Slot& s = slots_[k];
    values_.set_accumulated(k, s.position ? out[s.at + 1] : convert(out[s.at], type_of(stage_.accumulators[k].type)));
  }
}

}  // namespace tenon::compile

#include "tenon/sym/range.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tenon/base/error.h"
#include "tenon/sym/evaluate.h"
#include "tenon/sym/node.h"

namespace tenon::sym {
namespace {

constexpr int64_t minus_infinity = Range::minus_infinity, infinity = Range::infinity;
constexpr Range open{};

bool is_infinite(int64_t x) { return x == minus_infinity || x == infinity; }

/// Sums and products that stop at infinity. A finite result that leaves int64 becomes infinity too: wider, never wrong.
int64_t add_end(int64_t a, int64_t b, int64_t unclear) {  // unclear: what oo - oo is, at this end
  if (is_infinite(a) && is_infinite(b) && a != b) return unclear;
  if (is_infinite(a)) return a;
  if (is_infinite(b)) return b;
  int64_t out;
  if (__builtin_add_overflow(a, b, &out)) return a > 0 ? infinity : minus_infinity;
  return out;
}

int64_t multiply_end(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;  // 0 * oo: the ends bound finite values only
  int64_t out;
  if (is_infinite(a) || is_infinite(b) || __builtin_mul_overflow(a, b, &out))
    return (a < 0) == (b < 0) ? infinity : minus_infinity;
  return out;
}

Range add(Range a, Range b) { return {add_end(a.lo, b.lo, minus_infinity), add_end(a.hi, b.hi, infinity)}; }

Range multiply(Range a, Range b) {
  int64_t ends[] = {multiply_end(a.lo, b.lo), multiply_end(a.lo, b.hi), multiply_end(a.hi, b.lo),
                    multiply_end(a.hi, b.hi)};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}

int64_t divide_end(int64_t a, int64_t b) {  // floor, b != 0
  if (is_infinite(b)) {
    if (is_infinite(a)) return (a < 0) == (b < 0) ? infinity : minus_infinity;
    return a == 0 || (a < 0) == (b < 0) ? 0 : -1;
  }
  if (is_infinite(a)) return (a < 0) == (b < 0) ? infinity : minus_infinity;
  if (b == -1) return -a;  // a is not the least int64: that stands for infinity
  return checked_floordiv(a, b);
}

Range floor_divide(Range a, Range b) {
  if (b.lo <= 0) {
    if (b.hi >= 0 && b.lo == 0 && b.hi > 0) b.lo = 1;  // a divisor of 0 is an error, not a value
    else if (b.hi >= 0) return open;
  }
  int64_t ends[] = {divide_end(a.lo, b.lo), divide_end(a.lo, b.hi), divide_end(a.hi, b.lo), divide_end(a.hi, b.hi)};
  Range out{*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
  // With an open divisor quotients come as near to 0 as they can.
  if (is_infinite(b.lo) || is_infinite(b.hi)) out = unite(out, {a.lo < 0 || b.lo < 0 ? -1 : 0, 0});
  return out;
}

Range modulo(Range a, Range b) {
  if (b.lo < 0) return b.hi < 0 && b.has_lo() ? Range{b.lo + 1, 0} : open;
  if (a.lo >= 0 && a.hi < b.lo) return a;
  int64_t top = b.has_hi() ? b.hi - 1 : infinity;
  if (a.lo >= 0) top = std::min(top, a.hi);
  return {0, std::max<int64_t>(top, 0)};
}

Range power(Range base, int64_t exponent) {
  if (exponent < 0) return open;
  auto raise = [&](int64_t x) {
    int64_t out = 1;
    if (x == 0 || x == 1) return exponent == 0 ? 1 : x;
    if (x == -1) return exponent % 2 == 0 ? int64_t{1} : int64_t{-1};
    for (int64_t i = 0; i < exponent && !is_infinite(out); i++) out = multiply_end(out, x);
    if (is_infinite(out)) return x < 0 && exponent % 2 != 0 ? minus_infinity : infinity;
    return out;
  };
  int64_t a = raise(base.lo), b = raise(base.hi);
  Range out{std::min(a, b), std::max(a, b)};
  if (exponent % 2 == 0 && base.lo < 0 && base.hi > 0) out.lo = 0;
  return out;
}

Range of_real(double x) {
  if (std::isnan(x)) return open;
  double lo = std::floor(x), hi = std::ceil(x);
  return {lo <= -0x1p63  ? minus_infinity
          : lo >= 0x1p63 ? infinity
                         : static_cast<int64_t>(lo),
          hi >= 0x1p63    ? infinity
          : hi <= -0x1p63 ? minus_infinity
                          : static_cast<int64_t>(hi)};
}

/// Doubles hold every integer up to 2^53; beyond, rounding may step over an end.
Range rounded(const Expr& e, Range r) {
  if (e.is_integer_typed()) return r;
  constexpr int64_t exact = int64_t{1} << 53;
  return {r.lo < -exact ? minus_infinity : std::min(r.lo, exact), r.hi > exact ? infinity : std::max(r.hi, -exact)};
}

Range nonnegative_or_open(const Expr& e) { return e.is_nonnegative() ? Range{0, infinity} : open; }

/// Ranges of large parts, computed once: an expression may hold a part many times.
class RangeFinder {
 public:
  explicit RangeFinder(const Ranges& ranges) : ranges_(ranges) {}
  Range of(const Expr& e) {
    if (is_cheap(e)) return wide(computed(e));
    if (auto known = done_.find(e); known != done_.end()) return known->second;
    Range range = wide(computed(e));
    done_.emplace(e, range);
    return range;
  }

 private:
  // What stands for infinity bounds nothing from the other side: the greatest integer is a number there.
  static Range wide(Range r) { return {std::min(r.lo, infinity - 1), std::max(r.hi, minus_infinity + 1)}; }

  static bool is_cheap(const Expr& e) { return e.is_small() || e.node()->weight < 16; }
  Range computed(const Expr& e);
  Range of_product(const Expr& e);
  Range of_cases(const Expr& e);
  const Ranges& ranges_;
  std::unordered_map<Expr, Range> done_;
};

Range RangeFinder::of_product(const Expr& e) {
  Range out = Range::point(1);
  auto args = e.args();
  if (args[0].is(Kind::rational)) {  // exact only once the whole product is known
    Range numerator = Range::point(args[0].args()[0].as_int());
    for (const Expr& a : args.subspan(1)) numerator = multiply(numerator, of(a));
    Range down = floor_divide(numerator, Range::point(args[0].args()[1].as_int()));
    return {down.lo, down.hi == infinity ? infinity : down.hi + 1};
  }
  for (const Expr& a : args) out = multiply(out, of(a));
  return out;
}

/// What a comparison with a number says of a symbol: where it holds, and where it does not.
struct Told {
  Expr symbol;
  Range where, otherwise;
};

std::optional<Told> told_by(const Expr& condition) {
  static constexpr std::array relations = {Kind::lt, Kind::le, Kind::gt, Kind::ge};
  if (std::find(relations.begin(), relations.end(), condition.kind()) == relations.end()) return std::nullopt;
  Expr a = condition.args()[0], b = condition.args()[1];
  if (!a.is_integer_typed() || !b.is_integer_typed()) return std::nullopt;
  auto apart = difference(a, b);  // compared with 0 in place of b
  if (!apart) return std::nullopt;
  int64_t number = 0;
  Expr symbol = *apart;
  if (symbol.is(Kind::add) && symbol.args().size() == 2)
    for (size_t i : {0, 1})
      if (apart->args()[i].is_int()) number = apart->args()[i].as_int(), symbol = apart->args()[1 - i];
  constexpr int64_t most = int64_t{1} << 62;
  if (!symbol.is_symbol() || number < -most || number > most) return std::nullopt;
  int64_t at = -number;
  Range below{minus_infinity, at - 1}, at_most{minus_infinity, at}, above{at + 1, infinity}, at_least{at, infinity};
  switch (condition.kind()) {
    case Kind::lt: return Told{symbol, below, at_least};
    case Kind::le: return Told{symbol, at_most, above};
    case Kind::gt: return Told{symbol, above, at_most};
    default: return Told{symbol, at_least, below};
  }
}

/// The values of all cases. What the conditions say of symbols narrows those that are cheap to look at once more.
Range RangeFinder::of_cases(const Expr& e) {
  Range out = Range::point(0);
  bool any = false;
  std::vector<std::pair<Expr, Range>> before;  // where no earlier condition held
  for (size_t i = 0; i < e.args().size(); i += 2) {
    const Expr& value = e.args()[i];
    auto told = told_by(e.args()[i + 1]);
    Range range = open;
    bool possible = true;
    if (is_cheap(value) && (told || !before.empty())) {
      Ranges narrowed;
      for (const Expr& symbol : symbols_of(value)) narrowed.set(symbol, ranges_.of(symbol));
      auto narrow = [&](const Expr& symbol, Range to) {
        if (!narrowed.find(symbol)) narrowed.set(symbol, ranges_.of(symbol));
        narrowed.narrow(symbol, to);
        possible &= !narrowed.of(symbol).is_empty();
      };
      for (const auto& [symbol, to] : before) narrow(symbol, to);
      if (told) narrow(told->symbol, told->where);
      if (possible) range = RangeFinder(narrowed).of(value);
    } else {
      range = of(value);
    }
    if (told) before.emplace_back(told->symbol, told->otherwise);
    if (!possible) continue;
    out = any ? unite(out, range) : range;
    any = true;
  }
  return any ? out : open;
}

std::optional<bool> decide_by_difference(const Expr& condition, const Ranges& ranges) {
  Expr a = condition.args()[0], b = condition.args()[1];
  bool whole = a.is_integer_typed() && b.is_integer_typed();
  Range d = open;
  if (whole)
    if (auto exact = difference(a, b)) d = range_of(*exact, ranges);  // equal parts of both sides cancel
  Range apart = add(range_of(a, ranges), multiply(range_of(b, ranges), Range::point(-1)));
  d = intersect(d, apart);
  if (d.is_empty()) return std::nullopt;
  bool below = d.hi<0, above = d.lo> 0, at_most = d.hi <= 0, at_least = d.lo >= 0,
       equal = whole && d.lo == 0 && d.hi == 0;
  switch (condition.kind()) {
    case Kind::eq: return below || above ? std::optional(false) : equal ? std::optional(true) : std::nullopt;
    case Kind::ne: return below || above ? std::optional(true) : equal ? std::optional(false) : std::nullopt;
    case Kind::lt: return below ? std::optional(true) : at_least ? std::optional(false) : std::nullopt;
    case Kind::le: return at_most ? std::optional(true) : above ? std::optional(false) : std::nullopt;
    case Kind::gt: return above ? std::optional(true) : at_most ? std::optional(false) : std::nullopt;
    case Kind::ge: return at_least ? std::optional(true) : below ? std::optional(false) : std::nullopt;
    default: unreachable();
  }
}

}  // namespace

Range intersect(Range a, Range b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }
Range unite(Range a, Range b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

void append_text(std::string& out, Range r) {
  out += r.has_lo() ? tenon::text("[", r.lo) : "(-oo";
  out += ", ";
  out += r.has_hi() ? tenon::text(r.hi, "]") : "oo)";
}

void Ranges::set(const Expr& symbol, Range range) {
  expect(symbol.is_symbol(), "only a symbol has a range of its own");
  Table& table = table_.edit();
  auto [at, fresh] = table.by_name.try_emplace(symbol.name(), table.entries.size());
  if (fresh) table.entries.push_back({symbol, range});
  else {  // the name is found through the symbol that the entry holds
    size_t place = at->second;
    table.by_name.erase(at);
    table.by_name.emplace(symbol.name(), place);
    table.entries[place] = {symbol, range};
  }
}

void Ranges::narrow(const Expr& symbol, Range range) { set(symbol, intersect(of(symbol), range)); }

const Range* Ranges::find(const Expr& symbol) const {
  auto found = table_->by_name.find(symbol.name());
  return found == table_->by_name.end() ? nullptr : &table_->entries[found->second].range;
}

Range Ranges::of(const Expr& symbol) const {
  if (const Range* known = find(symbol)) return *known;
  return nonnegative_or_open(symbol);
}

Range range_of(const Expr& e, const Ranges& ranges) { return RangeFinder(ranges).of(e); }

Range RangeFinder::computed(const Expr& e) {
  auto arg = [&](size_t i) { return of(e.args()[i]); };
  auto all = [&](auto combine) {
    Range out = arg(0);
    for (size_t i = 1; i < e.args().size(); i++) out = combine(out, arg(i));
    return out;
  };
  switch (e.kind()) {
    case Kind::integer: return Range::point(e.as_int());
    case Kind::rational:
    case Kind::real: return of_real(e.real_value());
    case Kind::boolean: return Range::point(e.boolean_value());
    case Kind::symbol: return ranges_.of(e);
    case Kind::add: return rounded(e, all(add));
    case Kind::mul: return rounded(e, of_product(e));
    case Kind::pow: return e.args()[1].is_int() ? power(arg(0), e.args()[1].as_int()) : nonnegative_or_open(e);
    case Kind::max: return all([](Range a, Range b) { return Range{std::max(a.lo, b.lo), std::max(a.hi, b.hi)}; });
    case Kind::min: return all([](Range a, Range b) { return Range{std::min(a.lo, b.lo), std::min(a.hi, b.hi)}; });
    case Kind::mod: return e.is_integer_typed() ? modulo(arg(0), arg(1)) : nonnegative_or_open(e);
    case Kind::floor_div: return e.is_integer_typed() ? floor_divide(arg(0), arg(1)) : nonnegative_or_open(e);
    case Kind::to_float: return rounded(e, arg(0));
    case Kind::trunc:
    case Kind::trunc_float:
    case Kind::ceil:
    case Kind::floor:
    case Kind::round: return arg(0);
    case Kind::true_div: {
      Range by = arg(1);
      if (!e.args()[1].is_integer_typed() && by.contains(0)) return nonnegative_or_open(e);  // 1/2 lies in [0, 1]
      Range down = floor_divide(arg(0), by);
      return rounded(e, {down.lo, down.has_hi() ? down.hi + 1 : infinity});
    }
    case Kind::bit_and: {
      Range a = arg(0), b = arg(1);
      if (a.lo < 0 && b.lo < 0) return open;
      return {0, a.lo < 0 ? b.hi : b.lo < 0 ? a.hi : std::min(a.hi, b.hi)};
    }
    case Kind::rshift: {
      Range a = arg(0);
      return a.lo >= 0 ? Range{0, a.hi} : Range{a.lo, std::max<int64_t>(a.hi, -1)};
    }
    case Kind::bit_or:
    case Kind::lshift:
    case Kind::float_true_div:
    case Kind::float_pow:
    case Kind::round_decimal:
    case Kind::unknown_call: return nonnegative_or_open(e);
    case Kind::piecewise: return of_cases(e);
    case Kind::eq:
    case Kind::ne:
    case Kind::lt:
    case Kind::le:
    case Kind::gt:
    case Kind::ge:
    case Kind::logical_and:
    case Kind::logical_or:
    case Kind::logical_not: return {0, 1};  // not decided here: nested conditions would cost more with every level
  }
  unreachable();
}

std::optional<bool> decide(const Expr& condition, const Ranges& ranges) {
  switch (condition.kind()) {
    case Kind::boolean: return condition.boolean_value();
    case Kind::eq:
    case Kind::ne:
    case Kind::lt:
    case Kind::le:
    case Kind::gt:
    case Kind::ge: return decide_by_difference(condition, ranges);
    case Kind::logical_and:
    case Kind::logical_or: {
      bool decisive = condition.is(Kind::logical_or), all = true;
      for (const Expr& part : condition.args()) {
        auto known = decide(part, ranges);
        if (known == decisive) return decisive;
        all &= known.has_value();
      }
      return all ? std::optional(!decisive) : std::nullopt;
    }
    case Kind::logical_not: {
      auto known = decide(condition.args()[0], ranges);
      return known ? std::optional(!*known) : std::nullopt;
    }
    default: {  // a number as a condition: not 0
      Range r = range_of(condition, ranges);
      if (!r.contains(0)) return true;
      return r == Range::point(0) && (condition.is_integer_typed() || condition.is_int()) ? std::optional(false)
                                                                                          : std::nullopt;
    }
  }
}

}  // namespace tenon::sym

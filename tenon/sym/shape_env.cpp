#include "tenon/sym/shape_env.h"

#include <algorithm>
#include <charconv>

#include "tenon/base/error.h"
#include "tenon/sym/node.h"
#include "tenon/sym/print.h"

namespace tenon::sym {
namespace {

/// a*s + b in [lo, hi] for a constant a: the range of s.
struct Linear {
  Expr symbol;
  int64_t factor, offset;
};

std::optional<Linear> as_linear(const Expr& e) {
  auto terms = terms_of(e);
  if (terms.size() > 2) return std::nullopt;
  Term t = split_term(terms[0]);
  if (!t.monomial.is_symbol() || !t.coefficient.is_integer() || t.coefficient.n == 0) return std::nullopt;
  int64_t offset = 0;
  if (terms.size() == 2) {
    if (!terms[1].is_int()) return std::nullopt;
    offset = terms[1].as_int();
  }
  return Linear{t.monomial, t.coefficient.n, offset};
}

/// ceil or floor of (end - offset) / factor; open ends stay open, and so does one that leaves 64 bits.
std::optional<int64_t> solve_end(int64_t end, const Linear& l, bool up) {
  int64_t moved;
  if (end == Range::infinity || end == Range::minus_infinity) return std::nullopt;
  if (__builtin_sub_overflow(end, l.offset, &moved) || moved == INT64_MIN) return std::nullopt;
  return up ? -checked_floordiv(-moved, l.factor) : checked_floordiv(moved, l.factor);
}

Range solve_range(Range r, const Linear& l) {
  if (l.factor == INT64_MIN) return {};
  auto lo = solve_end(l.factor > 0 ? r.lo : r.hi, l, true), hi = solve_end(l.factor > 0 ? r.hi : r.lo, l, false);
  return {lo.value_or(Range::minus_infinity), hi.value_or(Range::infinity)};
}

}  // namespace

void Guards::add(Guard guard) {
  Table& table = table_.edit();
  if (table.conditions.insert(guard.condition).second) table.list.push_back(std::move(guard));
}

void ShapeEnv::constrain(const Expr& expr, Range range) {
  reserve_names(expr);
  if (!expr.is_symbol()) {
    auto [known, fresh] = constraints_.edit().ranges.try_emplace(expr, range);
    if (!fresh) known->second = intersect(known->second, range);
  }
  if (expr.is_symbol()) ranges.narrow(expr, range);
  else if (auto l = as_linear(expr)) ranges.narrow(l->symbol, solve_range(range, *l));
}

void ShapeEnv::reserve_names(const Expr& e) {
  for (const Expr& s : symbols_of(e)) {
    std::string_view name = s.name();
    if (name.size() < 2 || name[0] != 'u') continue;
    int number = 0;
    auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size() || number < 0) continue;
    if (number < std::numeric_limits<int>::max()) next_unbacked = std::max(next_unbacked, number + 1);
  }
}

Expr ShapeEnv::fresh_unbacked(Range range) {
  Expr s = Expr::symbol(text("u", next_unbacked++));
  ranges.set(s, range);
  return s;
}

Range ShapeEnv::range_of(const Expr& e) const {
  Range r = sym::range_of(e, ranges);
  auto given = constraints_->ranges.find(e);
  return given == constraints_->ranges.end() ? r : intersect(r, given->second);
}

std::optional<bool> ShapeEnv::decide(const Expr& condition) const {
  if (auto known = sym::decide(condition, ranges)) return known;
  if (!guards.empty()) {
    if (guards.has(condition)) return true;
    if (guards.has(logical_not(condition))) return false;
  }
  if (condition.args().size() == 2 && condition.args()[1].is_int()) {  // 2*s0 >= 4 where [4, 10] is given for 2*s0
    auto given = constraints_->ranges.find(condition.args()[0]);
    if (given != constraints_->ranges.end() && condition.is_boolean_typed() && condition.kind() <= Kind::ge) {
      Ranges one;
      Expr stand_in = Expr::symbol("constrained expression");
      one.set(stand_in, given->second);
      Expr args[] = {stand_in, condition.args()[1]};
      if (auto known = sym::decide(make(condition.kind(), args), one)) return known;
    }
  }
  return std::nullopt;
}

void ShapeEnv::guard(const Expr& condition, std::string where, std::string reason) {
  auto known = decide(condition);
  require(known != false, where, where.empty() ? "" : ": ", "the condition ", condition, " cannot hold (", reason, ")");
  if (!known) guards.add({condition, std::move(where), std::move(reason)});
}

}  // namespace tenon::sym

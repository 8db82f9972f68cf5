// Division, remainder, extremes, rounding and bits.
#include <algorithm>
#include <numeric>

#include "tenon/base/error.h"
#include "tenon/sym/node.h"

namespace tenon::sym {

std::optional<Expr> fold(Kind kind, std::span<const Expr> args) {
  std::vector<Number> numbers;
  for (const Expr& a : args) {
    auto n = number_of(a);
    if (!n) return std::nullopt;
    numbers.push_back(*n);
  }
  return expr_of(apply(kind, {}, numbers));
}

namespace {

Expr fold_or_intern(Kind kind, const Expr& item) {
  const Expr a = as_number(item);
  if (auto folded = fold(kind, std::span(&a, 1))) return *folded;
  return intern(kind, {a});
}
Expr fold_or_intern(Kind kind, const Expr& a, const Expr& b) {
  Expr both[] = {as_number(a), as_number(b)};
  if (auto folded = fold(kind, both)) return *folded;
  return intern(kind, both);
}

Expr to_integer(Kind rounding, const Expr& item) {
  const Expr a = as_number(item);
  return a.is_integer_typed() ? a : fold_or_intern(rounding, a);
}

int64_t magnitude(int64_t x) { return x == std::numeric_limits<int64_t>::min() ? x : std::abs(x); }

/// The greatest number dividing the divisor and every coefficient of a; 1 where a coefficient is no integer.
int64_t common_divisor(const Expr& a, int64_t divisor) {
  int64_t g = divisor;
  for (const Expr& t : terms_of(a)) {
    Number c = split_term(t).coefficient;
    if (!c.is_integer() || c.n == std::numeric_limits<int64_t>::min()) return 1;
    g = std::gcd(g, c.n);
  }
  return g;
}

bool has_integer_coefficients(const Expr& a) {
  for (const Expr& t : terms_of(a))
    if (!split_term(t).coefficient.is_integer()) return false;
  return true;
}

/// a // c with the terms that c divides taken out: (4*s0 + s1)//2 = 2*s0 + s1//2.
Expr floor_div_by_constant(const Expr& a, int64_t c) {
  std::vector<Expr> outside, inside;
  for (const Expr& t : terms_of(a)) {
    Term term = split_term(t);
    if (checked_mod(term.coefficient.n, c) == 0)
      outside.push_back(join_term({Number::of(checked_floordiv(term.coefficient.n, c)), term.monomial}));
    else inside.push_back(t);
  }
  Expr rest = sum(inside);
  if (rest.is_int()) {
    outside.push_back(checked_floordiv(rest.as_int(), c));
    return sum(outside);
  }
  int64_t g = c == std::numeric_limits<int64_t>::min() ? 1 : common_divisor(rest, magnitude(c));
  if (g > 1) rest = *exact_quotient(rest, g), c /= g;
  if (rest.is(Kind::floor_div) && c > 0 && rest.args()[1].is_int() && rest.args()[1].as_int() > 0) {
    int64_t both;
    if (!__builtin_mul_overflow(rest.args()[1].as_int(), c, &both)) {
      outside.push_back(floor_div(rest.args()[0], both));
      return sum(outside);
    }
  }
  outside.push_back(intern(Kind::floor_div, {rest, Expr(c)}));
  return sum(outside);
}

/// Of two that differ by a constant, one never wins.
void drop_losers(std::vector<Expr>& items, int wanted) {
  auto beats = [&](const Expr& a, const Expr& b) {
    constexpr uint32_t worth_looking = 100;
    if (!a.is_integer_typed() || !b.is_integer_typed()) return false;
    if (a.node()->weight > worth_looking || b.node()->weight > worth_looking) return false;
    auto d = difference(a, b);
    return d && d->is_int() && (d->as_int() > 0) == (wanted > 0);  // never 0: there are no two equal
  };
  for (size_t i = 0; i < items.size(); i++) {
    Expr winner = items[i];
    size_t before = items.size();
    std::erase_if(items, [&](const Expr& e) { return !(e == winner) && beats(winner, e); });
    if (items.size() != before) i = static_cast<size_t>(-1);  // positions moved: begin again
  }
}

Expr extreme(Kind kind, std::span<const Expr> items) {
  require(!items.empty(), "expected at least one argument for ", kind == Kind::max ? "Max" : "Min");
  int wanted = kind == Kind::max ? 1 : -1;
  std::optional<Number> constant;
  std::vector<Expr> kept;
  auto take = [&](const Expr& item) {
    const Expr e = as_number(item);
    if (auto n = number_of(e)) {
      if (!constant || compare_numbers(*n, *constant) == wanted) constant = n;
    } else {
      kept.push_back(e);
    }
  };
  for (const Expr& e : items) {
    if (e.is(kind))
      for (const Expr& a : e.args()) take(a);
    else take(e);
  }
  std::sort(kept.begin(), kept.end(), [](const Expr& a, const Expr& b) { return compare(a, b) < 0; });
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  if (constant && constant->is_integer() && !kept.empty()) {
    bool any = std::any_of(kept.begin(), kept.end(), [](const Expr& e) { return e.is_nonnegative(); });
    bool all = std::all_of(kept.begin(), kept.end(), [](const Expr& e) { return e.is_nonnegative(); });
    if (kind == Kind::max && any && constant->n <= 0) constant.reset();
    if (kind == Kind::min && all && constant && constant->n <= 0) kept.clear();
  }
  if (kept.size() <= 16) drop_losers(kept, wanted);
  if (constant) kept.insert(kept.begin(), expr_of(*constant));
  return kept.size() == 1 ? kept[0] : intern(kind, kept);
}

}  // namespace

Expr floor_div_symbolic(const Expr& dividend, const Expr& divisor) {
  const Expr both[] = {as_number(dividend), as_number(divisor)};
  const auto& [a, b] = both;
  if (b.is_int() && b.as_int() == 0)
    fail("division by zero: ", a.is_int() ? "an integer" : "a symbolic integer", " // 0");
  if (auto folded = fold(Kind::floor_div, both)) return *folded;
  if (a == Expr(0)) return 0;
  if (!a.is_integer_typed() || !b.is_integer_typed()) return intern(Kind::floor_div, both);
  if (a == b) return 1;
  if (b == Expr(1)) return a;
  if (b.is_int() && has_integer_coefficients(a)) return floor_div_by_constant(a, b.as_int());
  if (auto q = exact_quotient(a, b)) return *q;
  return intern(Kind::floor_div, both);
}

Expr mod_symbolic(const Expr& dividend, const Expr& divisor) {
  const Expr both[] = {as_number(dividend), as_number(divisor)};
  const auto& [a, b] = both;
  if (b.is_int() && b.as_int() == 0) fail("division by zero: a symbolic integer % 0");
  if (auto folded = fold(Kind::mod, both)) return *folded;
  if (a == Expr(0)) return 0;
  if (!a.is_integer_typed() || !b.is_integer_typed()) return intern(Kind::mod, both);
  if (a == b || b == Expr(1) || b == Expr(-1)) return 0;
  if (a.is(Kind::mod) && a.args()[1] == b) return a;
  if (b.is_int() && has_integer_coefficients(a)) {
    std::vector<Expr> kept;
    for (const Expr& t : terms_of(a)) {
      Term term = split_term(t);
      term.coefficient.n %= b.as_int();  // keeps the sign: -s0 stays -s0
      kept.push_back(join_term(term));
    }
    Expr rest = sum(kept);
    if (rest.is_int()) return checked_mod(rest.as_int(), b.as_int());
    if (rest.is(Kind::mod) && rest.args()[1] == b) return rest;
    return intern(Kind::mod, {rest, b});
  }
  if (exact_quotient(a, b)) return 0;
  return intern(Kind::mod, both);
}

Expr max(std::span<const Expr> items) { return extreme(Kind::max, items); }
Expr min(std::span<const Expr> items) { return extreme(Kind::min, items); }
Expr max(const Expr& a, const Expr& b) {
  if (a.is_int() && b.is_int()) return a.as_int() < b.as_int() ? b : a;
  Expr both[] = {a, b};
  return extreme(Kind::max, both);
}
Expr min(const Expr& a, const Expr& b) {
  if (a.is_int() && b.is_int()) return b.as_int() < a.as_int() ? b : a;
  Expr both[] = {a, b};
  return extreme(Kind::min, both);
}

Expr true_div(const Expr& a, const Expr& b) { return fold_or_intern(Kind::true_div, a, b); }
Expr float_true_div(const Expr& a, const Expr& b) { return fold_or_intern(Kind::float_true_div, a, b); }
Expr float_pow(const Expr& base, const Expr& exponent) { return fold_or_intern(Kind::float_pow, base, exponent); }
Expr to_float(const Expr& a) { return fold_or_intern(Kind::to_float, a); }
Expr trunc_float(const Expr& a) { return fold_or_intern(Kind::trunc_float, a); }
Expr trunc(const Expr& a) { return to_integer(Kind::trunc, a); }
Expr ceil(const Expr& a) { return to_integer(Kind::ceil, a); }
Expr floor(const Expr& a) { return to_integer(Kind::floor, a); }
Expr round(const Expr& a) { return to_integer(Kind::round, a); }
Expr round_decimal(const Expr& a, const Expr& digits) { return fold_or_intern(Kind::round_decimal, a, digits); }
Expr bit_and(const Expr& a, const Expr& b) { return a == b ? as_number(a) : fold_or_intern(Kind::bit_and, a, b); }
Expr bit_or(const Expr& a, const Expr& b) { return a == b ? as_number(a) : fold_or_intern(Kind::bit_or, a, b); }
Expr lshift(const Expr& a, const Expr& b) { return fold_or_intern(Kind::lshift, a, b); }
Expr rshift(const Expr& a, const Expr& b) { return fold_or_intern(Kind::rshift, a, b); }

}  // namespace tenon::sym

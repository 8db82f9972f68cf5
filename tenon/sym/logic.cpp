// Conditions, and choosing by them.
#include <algorithm>

#include "tenon/base/error.h"
#include "tenon/sym/node.h"

namespace tenon::sym {

namespace {

/// exact: -1, 0 or 1 where the sign is certain.
struct Sign {
  std::optional<int> exact;
  bool at_least_zero = false, at_most_zero = false;
};

Sign sign_of_difference(const Expr& a, const Expr& b) {
  Sign s;
  if (!a.is_integer_typed() || !b.is_integer_typed()) return s;
  auto d = difference(a, b);
  if (!d) return s;
  if (d->is_int()) {
    s.exact = d->as_int() < 0 ? -1 : d->as_int() > 0;
    return s;
  }
  s.at_least_zero = d->is_nonnegative();
  auto opposite = difference(0, *d);
  s.at_most_zero = opposite && opposite->is_nonnegative();
  // All terms at least 0 and a positive number among them.
  Expr last = terms_of(*d).back();
  if (s.at_least_zero && last.is_int() && last.as_int() > 0) s.exact = 1;
  if (s.at_most_zero && last.is_int() && last.as_int() < 0) s.exact = -1;
  return s;
}

Expr relation(Kind kind, const Expr& left, const Expr& right) {
  bool truths = left.is_boolean_typed() && right.is_boolean_typed() && (kind == Kind::eq || kind == Kind::ne);
  const Expr both[] = {truths ? left : as_number(left), truths ? right : as_number(right)};
  const auto& [a, b] = both;
  if (auto folded = fold(kind, both)) return *folded;
  if (a == b) return Expr::boolean(kind == Kind::eq || kind == Kind::le || kind == Kind::ge);
  Sign s = sign_of_difference(a, b);
  if (s.exact) {
    Number against_zero[] = {Number::of(*s.exact), Number::of(0)};
    return expr_of(apply(kind, {}, against_zero));
  }
  if (s.at_least_zero && (kind == Kind::ge || kind == Kind::lt)) return Expr::boolean(kind == Kind::ge);
  if (s.at_most_zero && (kind == Kind::le || kind == Kind::gt)) return Expr::boolean(kind == Kind::le);
  return intern(kind, both);
}

Expr junction(Kind kind, std::span<const Expr> conditions) {
  bool neutral = kind == Kind::logical_and;
  std::vector<Expr> kept;
  bool decided = false;
  auto take = [&](const Expr& e) {
    if (auto n = number_of(e)) decided |= n->truth() != neutral;
    else kept.push_back(e);
  };
  for (const Expr& e : conditions) {
    if (e.is(kind))
      for (const Expr& a : e.args()) take(a);
    else take(e);
  }
  if (decided) return Expr::boolean(!neutral);
  std::sort(kept.begin(), kept.end(), [](const Expr& a, const Expr& b) { return compare(a, b) < 0; });
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  if (kept.empty()) return Expr::boolean(neutral);
  return kept.size() == 1 ? kept[0] : intern(kind, kept);
}

}  // namespace

Expr eq(const Expr& a, const Expr& b) {
  if (a.is_int() && b.is_int()) return Expr::boolean(a == b);
  return relation(Kind::eq, a, b);
}
Expr ne(const Expr& a, const Expr& b) {
  if (a.is_int() && b.is_int()) return Expr::boolean(!(a == b));
  return relation(Kind::ne, a, b);
}
Expr lt(const Expr& a, const Expr& b) { return relation(Kind::lt, a, b); }
Expr le(const Expr& a, const Expr& b) { return relation(Kind::le, a, b); }
Expr gt(const Expr& a, const Expr& b) { return relation(Kind::gt, a, b); }
Expr ge(const Expr& a, const Expr& b) { return relation(Kind::ge, a, b); }

Expr logical_and(std::span<const Expr> conditions) { return junction(Kind::logical_and, conditions); }
Expr logical_or(std::span<const Expr> conditions) { return junction(Kind::logical_or, conditions); }
Expr logical_and(const Expr& a, const Expr& b) {
  Expr both[] = {a, b};
  return junction(Kind::logical_and, both);
}
Expr logical_or(const Expr& a, const Expr& b) {
  Expr both[] = {a, b};
  return junction(Kind::logical_or, both);
}

Expr logical_not(const Expr& a) {
  if (auto n = number_of(a)) return Expr::boolean(!n->truth());
  switch (a.kind()) {
    case Kind::eq: return ne(a.args()[0], a.args()[1]);
    case Kind::ne: return eq(a.args()[0], a.args()[1]);
    case Kind::lt: return ge(a.args()[0], a.args()[1]);
    case Kind::le: return gt(a.args()[0], a.args()[1]);
    case Kind::gt: return le(a.args()[0], a.args()[1]);
    case Kind::ge: return lt(a.args()[0], a.args()[1]);
    case Kind::logical_not: return a.args()[0];
    default: return intern(Kind::logical_not, {a});
  }
}

Expr piecewise(std::span<const Expr> values_and_conditions) {
  expect(values_and_conditions.size() % 2 == 0, "a piecewise expression takes values and conditions in pairs");
  std::vector<Expr> kept;
  for (size_t i = 0; i < values_and_conditions.size(); i += 2) {
    Expr value = values_and_conditions[i], condition = values_and_conditions[i + 1];
    auto n = number_of(condition);
    if (n && !n->truth()) continue;
    kept.push_back(value);
    kept.push_back(n ? Expr::boolean(true) : condition);
    if (n) break;
  }
  require(!kept.empty(), "no condition of a Piecewise expression can hold");
  bool total = kept.back() == Expr::boolean(true), same = true;
  for (size_t i = 0; i < kept.size(); i += 2) same &= kept[i] == kept[0];
  if (total && same) return kept[0];
  return intern(Kind::piecewise, kept);
}

Expr where(const Expr& condition, const Expr& a, const Expr& b) {
  Expr args[] = {a, condition, b, Expr::boolean(true)};
  return piecewise(args);
}

Expr make(Kind kind, std::span<const Expr> args) {
  auto two = [&](Expr (*f)(const Expr&, const Expr&)) {
    expect(args.size() == 2, "expected 2 arguments, got ", args.size());
    return f(args[0], args[1]);
  };
  auto one = [&](Expr (*f)(const Expr&)) {
    expect(args.size() == 1, "expected 1 argument, got ", args.size());
    return f(args[0]);
  };
  switch (kind) {
    case Kind::add: return sum(args);
    case Kind::mul: return product(args);
    case Kind::pow: return two(pow);
    case Kind::max: return max(args);
    case Kind::min: return min(args);
    case Kind::mod: return two(mod);
    case Kind::floor_div: return two(floor_div);
    case Kind::true_div: return two(true_div);
    case Kind::float_true_div: return two(float_true_div);
    case Kind::float_pow: return two(float_pow);
    case Kind::to_float: return one(to_float);
    case Kind::trunc: return one(trunc);
    case Kind::trunc_float: return one(trunc_float);
    case Kind::ceil: return one(ceil);
    case Kind::floor: return one(floor);
    case Kind::round: return one(round);
    case Kind::round_decimal: return two(round_decimal);
    case Kind::bit_and: return two(bit_and);
    case Kind::bit_or: return two(bit_or);
    case Kind::lshift: return two(lshift);
    case Kind::rshift: return two(rshift);
    case Kind::eq: return two(eq);
    case Kind::ne: return two(ne);
    case Kind::lt: return two(lt);
    case Kind::le: return two(le);
    case Kind::gt: return two(gt);
    case Kind::ge: return two(ge);
    case Kind::logical_and: return logical_and(args);
    case Kind::logical_or: return logical_or(args);
    case Kind::logical_not: return one(logical_not);
    case Kind::piecewise: return piecewise(args);
    case Kind::integer:
    case Kind::rational:
    case Kind::real:
    case Kind::boolean:
    case Kind::symbol:
    case Kind::unknown_call: break;
  }
  unreachable();
}

}  // namespace tenon::sym

#include "tenon/sym/evaluate.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "tenon/base/error.h"
#include "tenon/sym/node.h"
#include "tenon/sym/print.h"

namespace tenon::sym {

void Bindings::put(const Expr& symbol, const Expr& value) {
  expect(symbol.is_symbol(), "only a symbol can be bound");
  auto [at, fresh] = by_name_.try_emplace(symbol.name(), values_.size());
  if (fresh) values_.push_back({symbol, value});
  else values_[at->second].second = value;
}

std::optional<Expr> Bindings::find(const Expr& symbol) const {
  auto found = by_name_.find(symbol.name());
  return found == by_name_.end() ? std::nullopt : std::optional(values_[found->second].second);
}

namespace {

/// Computes values; those of large parts once, since an expression may hold a part many times.
class Evaluation {
 public:
  explicit Evaluation(const Bindings& bindings) : bindings_(bindings) {}

  Number of(const Expr& e) {
    if (auto n = number_of(e)) return *n;
    constexpr uint32_t large = 16;
    if (e.node()->weight < large) return computed(e);
    if (auto known = done_.find(e); known != done_.end()) return known->second;
    Number value = computed(e);
    done_.emplace(e, value);
    return value;
  }

 private:
  Number computed(const Expr& e);
  const Bindings& bindings_;
  std::unordered_map<Expr, Number> done_;
};

Number Evaluation::computed(const Expr& e) {
  auto args = e.args();
  switch (e.kind()) {
    case Kind::symbol: {
      auto bound = bindings_.find(e);
      require(bound.has_value(), "the symbol ", quoted(e.name()), " has no value");
      return *number_of(*bound);
    }
    // These look at no more than they need: what is not chosen may have no value.
    case Kind::piecewise:
      for (size_t i = 0; i < args.size(); i += 2)
        if (of(args[i + 1]).truth()) return of(args[i]);
      fail("no condition of ", quoted(to_infix(e)), " holds");
    case Kind::logical_and:
    case Kind::logical_or: {
      bool decisive = e.is(Kind::logical_or);
      for (const Expr& a : args)
        if (of(a).truth() == decisive) return Number::boolean(decisive);
      return Number::boolean(!decisive);
    }
    default: break;
  }
  if (args.size() == 2) {
    Number both[] = {of(args[0]), of(args[1])};
    return apply(e.kind(), e.name(), both);
  }
  std::vector<Number> values;
  values.reserve(args.size());
  for (const Expr& a : args) values.push_back(of(a));
  return apply(e.kind(), e.name(), values);
}

}  // namespace

int64_t evaluate(const Expr& e, const Bindings& bindings) {
  if (e.is_int()) return e.as_int();
  Number n = Evaluation(bindings).of(e);
  if (n.is_real() && n.r == std::floor(n.r) && std::abs(n.r) < 0x1p63) return static_cast<int64_t>(n.r);
  require(!n.is_real() && n.d == 1, "expected ", quoted(to_infix(e)), " to be an integer, got ", n.as_double());
  return n.n;
}

double evaluate_real(const Expr& e, const Bindings& bindings) { return Evaluation(bindings).of(e).as_double(); }
bool evaluate_bool(const Expr& e, const Bindings& bindings) { return Evaluation(bindings).of(e).truth(); }

namespace {

// `done` holds the replacements, and then the parts that were rewritten.
Expr substituted(const Expr& e, std::unordered_map<Expr, Expr>& done) {
  if (e.is_symbol()) {
    auto found = done.find(e);
    return found == done.end() ? e : found->second;
  }
  if (e.args().empty() || e.is_number()) return e;
  if (auto found = done.find(e); found != done.end()) return found->second;
  std::vector<Expr> args;
  bool changed = false;
  for (const Expr& a : e.args()) {
    args.push_back(substituted(a, done));
    changed |= !(args.back() == a);
  }
  Expr out = !changed ? e : e.is(Kind::unknown_call) ? Expr::unknown_call(e.name(), args) : make(e.kind(), args);
  done.emplace(e, out);
  return out;
}

void collect(const Expr& e, std::unordered_set<Expr>& seen, std::vector<Expr>& out) {
  if (e.is_small() || e.is_number()) return;
  if (!seen.insert(e).second) return;
  if (e.is_symbol()) out.push_back(e);
  for (const Expr& a : e.args()) collect(a, seen, out);
}

}  // namespace

Expr substitute(const Expr& e, std::span<const Replacement> replacements) {
  if (e.is_number()) return e;
  std::unordered_map<Expr, Expr> done;
  for (const auto& [from, to] : replacements) done.try_emplace(from, to);
  return substituted(e, done);
}

std::vector<Expr> symbols_of(const Expr& e) {
  std::unordered_set<Expr> seen;
  std::vector<Expr> out;
  collect(e, seen, out);
  std::sort(out.begin(), out.end(), [](const Expr& a, const Expr& b) { return compare(a, b) < 0; });
  return out;
}

bool has_symbol(const Expr& e, const Expr& symbol) {
  auto all = symbols_of(e);
  return std::find(all.begin(), all.end(), symbol) != all.end();
}

std::optional<Solution> solve(const Expr& equated, const Expr& value, const Expr& symbol) {
  Expr e = equated;
  expect(symbol.is_symbol(), "solve() needs a symbol to solve for");
  if (!e.is_integer_typed() || !value.is_integer_typed() || has_symbol(value, symbol)) return std::nullopt;
  Solution s{value, Expr::boolean(true), true};
  // Peels off one layer a round: e == s.value stays true, under s.condition.
  while (!(e == symbol)) {
    std::vector<Expr> with, without;
    for (const Expr& t : terms_of(e)) (has_symbol(t, symbol) ? with : without).push_back(t);
    if (with.empty()) return std::nullopt;
    if (!without.empty()) {
      s.value = s.value - sum(without);
      e = sum(with);
      continue;
    }
    if (with.size() > 1) {  // s0*u0 + s0: one factor in common
      auto quotient = exact_quotient(e, symbol);
      if (!quotient || has_symbol(*quotient, symbol)) return std::nullopt;
      s.condition = logical_and(s.condition, logical_and(ne(*quotient, 0), eq(mod(s.value, *quotient), 0)));
      s.value = floor_div(s.value, *quotient);
      e = symbol;
      continue;
    }
    if (e.is(Kind::mul)) {
      std::vector<Expr> others;
      std::optional<Expr> inner;
      for (const Expr& f : e.args()) {
        if (!has_symbol(f, symbol)) others.push_back(f);
        else if (inner) return std::nullopt;
        else inner = f;
      }
      Expr by = product(others);
      if (!by.is_integer_typed()) return std::nullopt;
      s.condition = logical_and(s.condition, logical_and(ne(by, 0), eq(mod(s.value, by), 0)));
      s.value = floor_div(s.value, by);
      e = *inner;
      continue;
    }
    if (e.is(Kind::floor_div) && !has_symbol(e.args()[1], symbol)) {
      s.value = s.value * e.args()[1];
      s.unique = false;
      e = e.args()[0];
      continue;
    }
    return std::nullopt;
  }
  return s;
}

}  // namespace tenon::sym

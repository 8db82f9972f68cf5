// Sums, products and powers in canonical form.
#include <algorithm>

#include "tenon/base/error.h"
#include "tenon/sym/node.h"

namespace tenon::sym {

std::span<const Expr> terms_of(const Expr& e) { return e.is(Kind::add) ? e.args() : std::span(&e, 1); }
std::span<const Expr> factors_of(const Expr& e) { return e.is(Kind::mul) ? e.args() : std::span(&e, 1); }

Factor split_factor(const Expr& e) {
  if (e.is(Kind::pow) && e.args()[1].is_int()) return {e.args()[0], e.args()[1].as_int()};
  return {e, 1};
}

Term split_term(const Expr& e) {
  if (auto n = number_of(e)) return {*n, 1};
  if (e.is(Kind::mul) && e.args()[0].is_number()) {
    auto rest = e.args().subspan(1);
    return {*number_of(e.args()[0]), rest.size() == 1 ? rest[0] : intern(Kind::mul, rest)};
  }
  return {Number::of(1), e};
}

Expr join_term(Term t) {
  if (t.coefficient.is_exact(0)) return 0;
  if (t.monomial == Expr(1)) return expr_of(t.coefficient);
  if (t.coefficient.is_exact(1)) return t.monomial;
  std::vector<Expr> args = {expr_of(t.coefficient)};
  auto factors = factors_of(t.monomial);
  args.insert(args.end(), factors.begin(), factors.end());
  return intern(Kind::mul, args);
}

std::strong_ordering compare_monomials(const Expr& a, const Expr& b) {
  if (a == b) return std::strong_ordering::equal;
  bool a_one = a == Expr(1), b_one = b == Expr(1);
  auto xs = a_one ? std::span<const Expr>() : factors_of(a), ys = b_one ? std::span<const Expr>() : factors_of(b);
  auto before = [](bool first) { return first ? std::strong_ordering::less : std::strong_ordering::greater; };
  for (size_t i = 0;; i++) {
    if (i == xs.size() && i == ys.size()) return std::strong_ordering::equal;
    if (i == xs.size()) return before(split_factor(ys[i]).exponent < 0);
    if (i == ys.size()) return before(split_factor(xs[i]).exponent > 0);
    if (xs[i] == ys[i]) continue;
    Factor x = split_factor(xs[i]), y = split_factor(ys[i]);
    auto by_base = compare(x.base, y.base);
    if (by_base == 0) return before(x.exponent > y.exponent);
    return by_base < 0 ? before(x.exponent > 0) : before(y.exponent < 0);
  }
}

namespace {

/// The sum, like terms merged by `add`; nothing where that gives nothing.
template <class Add>
std::optional<Expr> merged(std::vector<Term> terms, Add add) {
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return compare_monomials(a.monomial, b.monomial) < 0; });
  std::vector<Term> kept;
  bool cancelled = false;  // 0.5*z - 0.5*z is 0.0, as the product 0.0*z is: a number, which belongs to the others
  for (size_t i = 0; i < terms.size();) {
    Term t = terms[i++];
    for (; i < terms.size() && terms[i].monomial == t.monomial; i++) {
      std::optional<Number> both = add(t.coefficient, terms[i].coefficient);
      if (!both) return std::nullopt;
      t.coefficient = *both;
    }
    if (t.coefficient.is_exact(0)) continue;
    if (t.coefficient.is_real() && t.coefficient.r == 0 && !(t.monomial == Expr(1))) {
      cancelled = true;
      t.monomial = 1;
    }
    kept.push_back(t);
  }
  if (cancelled) return merged(std::move(kept), add);
  std::vector<Expr> args;
  for (const Term& t : kept) args.push_back(join_term(t));
  if (args.empty()) return Expr(0);
  return args.size() == 1 ? args[0] : intern(Kind::add, args);
}

Expr sum_of_terms(std::vector<Term> terms) {
  return *merged(std::move(terms), [](Number a, Number b) { return std::optional(a + b); });
}

/// A product while it is being put together.
struct Product {
  Number coefficient = Number::of(1);
  std::vector<Factor> factors;  // none of them a sum
  std::vector<Factor> sums;

  void take(const Expr& item, int64_t times = 1) {
    const Expr e = as_number(item);
    if (auto n = number_of(e)) {
      Number power[] = {*n, Number::of(times)};
      coefficient = coefficient * (times == 1 ? *n : apply(Kind::pow, {}, power));
    } else if (e.is(Kind::mul)) {
      for (const Expr& a : e.args()) take(a, times);
    } else {
      Factor f = split_factor(e);
      f.exponent = checked_mul(f.exponent, times);
      (f.base.is(Kind::add) ? sums : factors).push_back(f);
    }
  }
};

void merge_factors(std::vector<Factor>& factors) {
  std::sort(factors.begin(), factors.end(),
            [](const Factor& a, const Factor& b) { return compare(a.base, b.base) < 0; });
  size_t kept = 0;
  for (size_t i = 0; i < factors.size();) {
    Factor f = factors[i++];
    while (i < factors.size() && factors[i].base == f.base) f.exponent = checked_add(f.exponent, factors[i++].exponent);
    if (f.exponent != 0) factors[kept++] = f;
  }
  factors.resize(kept);
}

Expr monomial_of(const std::vector<Factor>& factors) {
  std::vector<Expr> args;
  for (const Factor& f : factors)
    args.push_back(f.exponent == 1 ? f.base : intern(Kind::pow, {f.base, Expr(f.exponent)}));
  if (args.empty()) return 1;
  return args.size() == 1 ? args[0] : intern(Kind::mul, args);
}

Expr times_monomial(const Expr& a, const Product& by) {
  Product p = by;
  p.take(a);
  p.factors.insert(p.factors.end(), p.sums.begin(),
                   p.sums.end());  // those of a product left alone earlier stay factors
  merge_factors(p.factors);
  return monomial_of(p.factors);
}

uint64_t weight_of(const Expr& e) { return e.is_small() ? 1 : e.node()->weight; }

/// Whether multiplying the sums out stays small and exact. Small counts repeated parts too: a factor that is large
/// itself would be copied into every term.
bool worth_expanding(const Product& p) {
  bool single = p.sums.size() == 1 && p.sums[0].exponent == 1;
  if (single && p.factors.empty() && !p.coefficient.is_real()) return true;
  uint64_t copied = 0;
  for (const Factor& f : p.factors) {
    if (!f.base.is_integer_typed()) return false;
    copied += weight_of(f.base);
  }
  size_t terms = 1;
  for (const Factor& s : p.sums) {
    if (!s.base.is_integer_typed()) return false;
    if (s.exponent < 0 || s.exponent > 6) return false;
    for (int64_t i = 0; i < s.exponent; i++) {
      terms *= s.base.args().size();
      copied += weight_of(s.base) / s.base.args().size();
      if (terms > max_expanded_terms && !single) return false;
    }
  }
  return terms * copied <= max_expanded_weight;
}

std::vector<Term> expand(const Product& p) {
  std::vector<Term> terms = {{p.coefficient, monomial_of(p.factors)}};
  for (const Factor& s : p.sums) {
    for (int64_t i = 0; i < s.exponent; i++) {
      std::vector<Term> next;
      for (const Term& t : terms) {
        Product left;
        left.take(t.monomial);
        for (const Expr& e : s.base.args()) {
          Term u = split_term(e);
          next.push_back({t.coefficient * u.coefficient, times_monomial(u.monomial, left)});
        }
      }
      terms = std::move(next);
    }
  }
  return terms;
}

Expr finish(Product p) {
  if (p.coefficient.is_exact(0)) return 0;
  if (p.coefficient.is_real() && p.coefficient.r == 0) return Expr::real(0);
  merge_factors(p.factors);
  merge_factors(p.sums);
  if (p.sums.empty()) return join_term({p.coefficient, monomial_of(p.factors)});
  if (worth_expanding(p)) return sum_of_terms(expand(p));
  // Too large as a whole, but a square of a small sum is multiplied out all the same, as it would be on its own.
  Product next{p.coefficient, p.factors, {}};
  bool changed = false;
  for (const Factor& s : p.sums) {
    Product alone{Number::of(1), {}, {s}};
    bool small = s.exponent > 1 && worth_expanding(alone);
    changed |= small;
    if (small) next.take(sum_of_terms(expand(alone)));
    else next.sums.push_back(s);
  }
  if (changed) return finish(std::move(next));
  p.factors.insert(p.factors.end(), p.sums.begin(), p.sums.end());
  merge_factors(p.factors);
  return join_term({p.coefficient, monomial_of(p.factors)});
}

uint32_t depth_of(const Expr& e) { return e.is_small() ? 1 : e.node()->depth; }

/// The greatest coefficient of a sum without its sign; nothing where one is no integer.
std::optional<uint64_t> greatest_coefficient(const Expr& e) {
  uint64_t greatest = 0;
  for (const Expr& t : terms_of(e)) {
    Number c = split_term(t).coefficient;
    if (!c.is_integer() || c.n == std::numeric_limits<int64_t>::min()) return std::nullopt;
    greatest = std::max(greatest, static_cast<uint64_t>(c.n < 0 ? -c.n : c.n));
  }
  return greatest;
}

bool has_small_exponents(const Expr& monomial) {
  for (const Expr& f : factors_of(monomial))
    if (int64_t e = split_factor(f).exponent; e > (1 << 30) || e < -(1 << 30)) return false;
  return true;
}

/// Whether rest - step * b stays within 64 bits and within the limits of expressions.
bool can_subtract(const Expr& rest, const Term& step, const Expr& b, uint64_t greatest_of_b) {
  auto have = greatest_coefficient(rest);
  uint64_t taken;
  auto by = static_cast<uint64_t>(step.coefficient.n < 0 ? -step.coefficient.n : step.coefficient.n);
  if (!have || __builtin_mul_overflow(by, greatest_of_b, &taken) || __builtin_add_overflow(taken, *have, &taken) ||
      taken > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return false;
  uint64_t grows = weight_of(b) + (weight_of(step.monomial) + 2) * terms_of(b).size();
  return weight_of(rest) + grows <= max_weight / 2 && depth_of(rest) + depth_of(step.monomial) + 4 < max_depth;
}

/// Long division by the leading term; terms are kept in a lexicographic order, so the leading term comes first.
std::optional<Expr> long_division(const Expr& a, const Expr& b) {
  Term lead = split_term(terms_of(b)[0]);
  auto greatest = greatest_coefficient(b);
  if (!greatest || !has_small_exponents(lead.monomial) || depth_of(b) + 4 >= max_depth) return std::nullopt;
  std::vector<Expr> quotient;
  Expr rest = a;
  for (size_t round = 0; rest != Expr(0); round++) {
    if (round > max_expanded_terms) return std::nullopt;
    Term t = split_term(terms_of(rest)[0]);
    if (!t.coefficient.is_integer() || t.coefficient.n == std::numeric_limits<int64_t>::min()) return std::nullopt;
    if (checked_mod(t.coefficient.n, lead.coefficient.n) != 0 || !has_small_exponents(t.monomial)) return std::nullopt;
    Product p;
    p.coefficient = Number::of(checked_floordiv(t.coefficient.n, lead.coefficient.n));
    p.take(t.monomial);
    p.take(lead.monomial, -1);
    p.factors.insert(p.factors.end(), p.sums.begin(), p.sums.end());
    merge_factors(p.factors);
    for (const Factor& f : p.factors)
      if (f.exponent < 0) return std::nullopt;
    Term step{p.coefficient, monomial_of(p.factors)};
    if (!can_subtract(rest, step, b, *greatest)) return std::nullopt;
    quotient.push_back(join_term(step));
    rest = rest - quotient.back() * b;
  }
  return sum(quotient);
}

}  // namespace

Expr sum(std::span<const Expr> items) {
  std::vector<Term> terms;
  for (const Expr& e : items)
    for (const Expr& t : terms_of(e)) terms.push_back(split_term(as_number(t)));
  return sum_of_terms(std::move(terms));
}

Expr product(std::span<const Expr> items) {
  Product p;
  for (const Expr& e : items) p.take(e);
  return finish(std::move(p));
}

Expr add_symbolic(const Expr& a, const Expr& b) {
  if (a.is_int() && b.is_int()) return checked_add(a.as_int(), b.as_int());
  Expr both[] = {a, b};
  return sum(both);
}

Expr subtract_symbolic(const Expr& a, const Expr& b) {
  if (a.is_int() && b.is_int()) return checked_sub(a.as_int(), b.as_int());
  if (a == b && a.is_integer_typed()) return 0;
  return add_symbolic(a, multiply_symbolic(b, -1));
}

Expr multiply_symbolic(const Expr& a, const Expr& b) {
  if (a.is_int() && b.is_int()) return checked_mul(a.as_int(), b.as_int());
  if (a == Expr(1)) return as_number(b);
  if (b == Expr(1)) return as_number(a);
  Expr both[] = {a, b};
  return product(both);
}

Expr pow(const Expr& a, const Expr& b) {
  const Expr both[] = {as_number(a), as_number(b)};
  const auto& [base, exponent] = both;
  if (auto folded = fold(Kind::pow, both)) return *folded;
  if (exponent == Expr(0)) return 1;
  if (exponent == Expr(1)) return base;
  if (base == Expr(1)) return 1;
  if (!exponent.is_int()) return intern(Kind::pow, both);
  Product p;
  p.take(base, exponent.as_int());
  return finish(std::move(p));
}

std::optional<Expr> exact_quotient(const Expr& a, const Expr& b) {
  if (b == Expr(0)) return std::nullopt;
  if (a == Expr(0)) return Expr(0);
  if (!a.is_integer_typed() || !b.is_integer_typed()) return std::nullopt;
  return long_division(a, b);
}

std::optional<Expr> difference(const Expr& a, const Expr& b) {
  if (a == b && a.is_integer_typed()) return Expr(0);
  if (weight_of(a) + weight_of(b) > max_weight / 4 || std::max(depth_of(a), depth_of(b)) + 4 >= max_depth)
    return std::nullopt;
  const Expr x = as_number(a), y = as_number(b);
  std::vector<Term> terms;
  for (const Expr& t : terms_of(x)) terms.push_back(split_term(t));
  for (const Expr& t : terms_of(y)) {
    Term taken = split_term(t);
    auto negative = try_negate(taken.coefficient);
    if (!negative) return std::nullopt;
    taken.coefficient = *negative;
    terms.push_back(std::move(taken));
  }
  return merged(std::move(terms), try_add);
}

}  // namespace tenon::sym

// The interned nodes behind Expr, and what canonical forms are built with. For the files of this folder only.
#pragma once
#include <string>
#include <vector>

#include "tenon/sym/expr.h"
#include "tenon/sym/number.h"

namespace tenon::sym {

struct Node : Held {
  Kind kind = Kind::integer;
  SymbolTraits traits;
  bool integer_typed = false, boolean_typed = false, nonnegative = false;
  uint32_t weight = 1;  // nodes when written out as a tree: a walk over shared parts costs this much
  uint32_t depth = 1;
  int64_t value = 0;  // integer, boolean
  double real = 0;
  size_t hash = 0;
  std::string name;
  std::vector<Expr> args;
};

/// Above these an expression is refused: every walk over one is then bounded.
constexpr uint32_t max_weight = 200'000, max_depth = 1'000;
/// A product of sums is multiplied out up to this many terms.
constexpr size_t max_expanded_terms = 64;
constexpr uint64_t max_expanded_weight = 20'000;

/// Interns a node whose arguments are in canonical form already.
Expr intern(Kind kind, std::span<const Expr> args, std::string_view name = {});
inline Expr intern(Kind kind, std::initializer_list<Expr> args) {
  return intern(kind, std::span(args.begin(), args.size()));
}

/// coefficient * monomial, the shape of each term of a sum. The monomial is 1, or a product without a number in front.
struct Term {
  Number coefficient;
  Expr monomial;
};
Term split_term(const Expr& e);
Expr join_term(Term t);
std::span<const Expr> terms_of(const Expr& e);  // of a sum; {e} for anything else
std::span<const Expr> terms_of(Expr&&) = delete;
/// base^exponent with a constant integer exponent.
struct Factor {
  Expr base;
  int64_t exponent;
};
Factor split_factor(const Expr& e);
std::span<const Expr> factors_of(const Expr& monomial);  // of a product; {e} for anything else
std::span<const Expr> factors_of(Expr&&) = delete;
/// Lexicographic by exponents, greatest first, as a polynomial is written; constants last.
std::strong_ordering compare_monomials(const Expr& a, const Expr& b);

/// A condition where a number is wanted counts 1 where it holds, as in Python. Every arithmetic form takes its
/// arguments through this.
inline Expr as_number(const Expr& e) { return e.is_boolean_typed() ? where(e, 1, 0) : e; }

/// a - b, unless working it out leaves 64 bits.
std::optional<Expr> difference(const Expr& a, const Expr& b);

/// The name srepr gives to what e is: Add, FloorDiv, ... Good as long as e is held.
std::string_view function_name(const Expr& e);

/// Numbers folded; otherwise nothing.
std::optional<Expr> fold(Kind kind, std::span<const Expr> args);

}  // namespace tenon::sym

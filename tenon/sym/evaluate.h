// Expressions with values for their symbols, and the way back: the symbol from the value.
#pragma once
#include <span>
#include <unordered_map>
#include <vector>

#include "tenon/sym/expr.h"

namespace tenon::sym {

/// Symbol -> integer or double. A symbol is found by its name, whatever its traits.
class Bindings {
 public:
  Bindings() = default;
  Bindings(std::initializer_list<std::pair<Expr, int64_t>> values) {
    for (auto [symbol, value] : values) set(symbol, value);
  }
  void set(const Expr& symbol, int64_t value) { put(symbol, Expr(value)); }
  void set_real(const Expr& symbol, double value) { put(symbol, Expr::real(value)); }
  std::optional<Expr> find(const Expr& symbol) const;  // a number
  size_t size() const { return values_.size(); }
  const std::vector<std::pair<Expr, Expr>>& values() const { return values_; }

 private:
  void put(const Expr& symbol, const Expr& value);
  std::vector<std::pair<Expr, Expr>> values_;
  std::unordered_map<std::string_view, size_t> by_name_;  // names of the symbols that stand beside them
};

/// The value of e; an Error names a symbol that has none. A boolean counts as 0 or 1.
int64_t evaluate(const Expr& e, const Bindings& bindings);
double evaluate_real(const Expr& e, const Bindings& bindings);
bool evaluate_bool(const Expr& e, const Bindings& bindings);

/// e with symbols replaced by expressions, all at once, and simplified anew.
using Replacement = std::pair<Expr, Expr>;
Expr substitute(const Expr& e, std::span<const Replacement> replacements);

/// Every symbol in e, once, in the order of compare().
std::vector<Expr> symbols_of(const Expr& e);
bool has_symbol(const Expr& e, const Expr& symbol);

struct Solution {
  Expr value;      // what the symbol must be
  Expr condition;  // what must hold for that to be a solution, e.g. that a division leaves no rest
  bool unique;     // no other value solves it; false after s//4 == v, where s = 4*v is one of four
};
/// Solves e == value for a symbol in which e is linear, also inside floor divisions by something else: 2*s0 + 1 == v
/// gives (v - 1)//2 where v - 1 is even. The symbol must not occur in `value`. Nothing where it cannot be isolated.
std::optional<Solution> solve(const Expr& e, const Expr& value, const Expr& symbol);

}  // namespace tenon::sym

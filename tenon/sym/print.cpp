#include "tenon/sym/print.h"

#include <cmath>

#include "tenon/base/error.h"
#include "tenon/sym/node.h"

namespace tenon::sym {

std::string_view function_name(const Expr& e) {
  switch (e.kind()) {
    case Kind::add: return "Add";
    case Kind::mul: return "Mul";
    case Kind::pow: return e.args()[1].is_number() ? "Pow" : "PowByNatural";
    case Kind::max: return "Max";
    case Kind::min: return "Min";
    // PyTorch keeps Mod for operands known not to be negative.
    case Kind::mod: return e.args()[0].is_nonnegative() && e.args()[1].is_nonnegative() ? "Mod" : "PythonMod";
    case Kind::floor_div: return "FloorDiv";
    case Kind::true_div: return "IntTrueDiv";
    case Kind::float_true_div: return "FloatTrueDiv";
    case Kind::float_pow: return "FloatPow";
    case Kind::to_float: return "ToFloat";
    case Kind::trunc: return "TruncToInt";
    case Kind::trunc_float: return "TruncToFloat";
    case Kind::ceil: return "CeilToInt";
    case Kind::floor: return "FloorToInt";
    case Kind::round: return "RoundToInt";
    case Kind::round_decimal: return "RoundDecimal";
    case Kind::bit_and: return "BitwiseFn_bitwise_and";
    case Kind::bit_or: return "BitwiseFn_bitwise_or";
    case Kind::lshift: return "LShift";
    case Kind::rshift: return "RShift";
    case Kind::eq: return "Equality";
    case Kind::ne: return "Unequality";
    case Kind::lt: return "StrictLessThan";
    case Kind::le: return "LessThan";
    case Kind::gt: return "StrictGreaterThan";
    case Kind::ge: return "GreaterThan";
    case Kind::logical_and: return "And";
    case Kind::logical_or: return "Or";
    case Kind::logical_not: return "Not";
    case Kind::piecewise: return "Piecewise";
    case Kind::integer: return "Integer";
    case Kind::rational: return "Rational";
    case Kind::real: return "Float";
    case Kind::boolean: return "boolean";
    case Kind::symbol:
    case Kind::unknown_call: return e.name();
  }
  unreachable();
}

namespace {

/// Terms as sympy writes them: 2 - s0, where every other sum has its number last.
std::vector<Expr> ordered_terms(const Expr& e) {
  std::vector<Expr> terms(e.args().begin(), e.args().end());
  if (terms.size() != 2) return terms;
  auto number = number_of(terms[1]);
  if (!number || compare_numbers(*number, Number::of(0)) != 1) return terms;
  if (!terms[0].is(Kind::mul) || terms[0].args().size() != 2 || !terms[0].args()[0].is_number()) return terms;
  if (compare_numbers(*number_of(terms[0].args()[0]), Number::of(0)) == -1) std::swap(terms[0], terms[1]);
  return terms;
}

// Precedences; a part is put into parentheses where it binds less tightly than its surroundings.
enum : int {
  p_relation = 20,
  p_or = 21,
  p_and = 22,
  p_not = 23,
  p_function = 35,
  p_bits = 37,
  p_add = 40,
  p_mul = 50,
  p_pow = 60,
  p_atom = 100
};

/// What both spellings share: lists, calls and cases, given how one expression is written.
class Spelling {
 public:
  virtual ~Spelling() = default;
  virtual void write(const Expr& e) = 0;
  std::string out;

 protected:
  void write_list(std::span<const Expr> items) {
    for (size_t i = 0; i < items.size(); i++) {
      if (i) out += ", ";
      write(items[i]);
    }
  }

  void write_call(std::string_view name, std::span<const Expr> args) {
    out += name;
    out += '(';
    write_list(args);
    out += ')';
  }

  void write_cases(const Expr& e, std::string_view pair) {  // Piecewise(pair(value, condition), ...)
    out += "Piecewise(";
    for (size_t i = 0; i < e.args().size(); i += 2) {
      if (i) out += ", ";
      write_call(pair, e.args().subspan(i, 2));
    }
    out += ')';
  }
};

class Infix final : public Spelling {
 public:
  void write(const Expr& e) override {
    switch (e.kind()) {
      case Kind::integer: append_integer(out, e.as_int()); return;
      case Kind::rational:
        append_integer(out, e.args()[0].as_int());
        out += '/';
        append_integer(out, e.args()[1].as_int());
        return;
      case Kind::real: {
        double v = e.real_value();
        if (std::isinf(v)) out += v < 0 ? "-oo" : "oo";
        else tenon::append_text(out, v);
        return;
      }
      case Kind::boolean: out += e.boolean_value() ? "True" : "False"; return;
      case Kind::symbol: out += e.name(); return;
      case Kind::add: write_sum(e); return;
      case Kind::mul: write_product(e); return;
      case Kind::pow: write_power(e); return;
      case Kind::floor_div:
        out += '(';
        write_operand(e.args()[0]);
        out += "//";
        write_operand(e.args()[1]);
        out += ')';
        return;
      case Kind::lt: write_relation(e, " < "); return;
      case Kind::le: write_relation(e, " <= "); return;
      case Kind::gt: write_relation(e, " > "); return;
      case Kind::ge: write_relation(e, " >= "); return;
      case Kind::logical_and: write_junction(e, " & "); return;
      case Kind::logical_or: write_junction(e, " | "); return;
      case Kind::logical_not:
        out += '~';
        write_at(e.args()[0], p_atom);
        return;
      case Kind::eq: write_call("Eq", e.args()); return;
      case Kind::ne: write_call("Ne", e.args()); return;
      case Kind::piecewise: write_cases(e, ""); return;
      default: write_call(function_name(e), e.args()); return;
    }
  }

 private:
  static int precedence(const Expr& e) {
    switch (e.kind()) {
      case Kind::integer: return e.as_int() < 0 ? p_add : p_atom;
      case Kind::rational: return e.args()[0].as_int() < 0 ? p_add : p_mul;
      case Kind::real: return std::signbit(e.real_value()) ? p_add : p_atom;
      case Kind::add: return p_add;
      case Kind::mul: {
        auto n = number_of(e.args()[0]);
        return n && compare_numbers(*n, Number::of(0)) == -1 ? p_add : p_mul;
      }
      case Kind::pow: return !e.args()[1].is_number() || e.args()[1] == Expr(-1) ? p_mul : p_pow;
      case Kind::floor_div:
      case Kind::mod:
      case Kind::true_div:
      case Kind::float_true_div: return p_function;
      case Kind::bit_and:
      case Kind::bit_or: return p_bits;
      case Kind::lt:
      case Kind::le:
      case Kind::gt:
      case Kind::ge: return p_relation;
      case Kind::logical_or: return p_or;
      case Kind::logical_and: return p_and;
      case Kind::logical_not: return p_not;
      default: return p_atom;
    }
  }

  void write_at(const Expr& e, int level, bool strict = false) {  // strict: parentheses for an equal precedence too
    bool wrap = precedence(e) < level || (strict && precedence(e) == level);
    if (wrap) out += '(';
    write(e);
    if (wrap) out += ')';
  }

  void write_operand(const Expr& e) {  // of //
    bool bare = e.is_symbol() || e.is(Kind::max) || e.is(Kind::min) || (e.is_int() && e.as_int() >= 0);
    if (!bare) out += '(';
    write(e);
    if (!bare) out += ')';
  }

  void write_sum(const Expr& e) {
    bool first = true;
    for (const Expr& t : ordered_terms(e)) {
      size_t start = out.size();
      write_at(t, p_add);
      if (first) {
        first = false;
        continue;
      }
      if (out[start] == '-') {  // a + -b is written a - b
        out[start] = ' ';
        out.insert(start, " -");
      } else {
        out.insert(start, " + ");
      }
    }
  }

  void write_product(const Expr& e) {
    std::vector<Expr> above, below;
    auto args = e.args();
    Number coefficient = Number::of(1);
    if (args[0].is_number()) coefficient = *number_of(args[0]), args = args.subspan(1);
    if (compare_numbers(coefficient, Number::of(0)) == -1 &&
        !(coefficient.is_integer() && coefficient.n == INT64_MIN)) {
      out += '-';
      coefficient = Number::of(-1) * coefficient;
    }
    if (coefficient.is_real()) above.push_back(Expr::real(coefficient.r));
    else if (coefficient.n != 1) above.push_back(coefficient.n);
    if (!coefficient.is_real() && coefficient.d != 1) below.push_back(coefficient.d);
    for (const Expr& a : args) {
      Factor f = split_factor(a);
      if (f.exponent < 0 && f.exponent != INT64_MIN) below.push_back(pow(f.base, -f.exponent));
      else above.push_back(a);
    }
    if (above.empty()) out += '1';
    write_factors(above);
    if (below.empty()) return;
    out += '/';
    if (below.size() > 1) out += '(';
    if (below.size() == 1) write_at(below[0], p_mul, true);
    else write_factors(below);
    if (below.size() > 1) out += ')';
  }

  void write_factors(const std::vector<Expr>& factors) {
    for (size_t i = 0; i < factors.size(); i++) {
      if (i) out += '*';
      write_at(factors[i], p_mul, true);
    }
  }

  void write_power(const Expr& e) {
    Expr base = e.args()[0], exponent = e.args()[1];
    if (!exponent.is_number()) return write_call("PowByNatural", e.args());
    if (exponent == Expr(-1)) {
      out += "1/";
      write_at(base, p_mul, true);
      return;
    }
    write_at(base, p_pow, true);
    out += "**";
    write_at(exponent, p_pow, true);
  }

  void write_relation(const Expr& e, std::string_view sign) {
    write_at(e.args()[0], p_function, true);
    out += sign;
    write_at(e.args()[1], p_function, true);
  }

  void write_junction(const Expr& e, std::string_view sign) {
    for (size_t i = 0; i < e.args().size(); i++) {
      if (i) out += sign;
      write_at(e.args()[i], p_function);
    }
  }
};

class Srepr final : public Spelling {
 public:
  void write(const Expr& e) override {
    switch (e.kind()) {
      case Kind::integer: write_integer(e.as_int()); return;
      case Kind::rational:
        out += "Rational(";
        append_integer(out, e.args()[0].as_int());
        out += ", ";
        append_integer(out, e.args()[1].as_int());
        out += ')';
        return;
      case Kind::real: {
        double v = e.real_value();
        if (std::isinf(v)) out += v < 0 ? "-oo" : "oo";
        else if (std::isnan(v)) out += "nan";
        else out += "Float('", tenon::append_text(out, v), out += "', precision=53)";
        return;
      }
      case Kind::boolean: out += e.boolean_value() ? "true" : "false"; return;
      case Kind::symbol: write_symbol(e); return;
      case Kind::add: write_call("Add", ordered_terms(e)); return;
      case Kind::mul: write_product(e); return;
      case Kind::piecewise: write_cases(e, "ExprCondPair"); return;
      default: write_call(function_name(e), e.args()); return;
    }
  }

 private:
  void write_integer(int64_t value) {
    out += "Integer(";
    append_integer(out, value);
    out += ')';
  }

  void write_symbol(const Expr& e) {
    out += "Symbol('";
    for (char c : e.name()) {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
    out += '\'';
    SymbolTraits t = e.traits();
    if (t.positive) out += ", positive=True";
    if (t.nonnegative) out += ", nonnegative=True";
    if (t.integer) out += ", integer=True";
    if (t.real) out += ", real=True";
    out += ')';
  }

  void write_product(const Expr& e) {
    out += "Mul(";
    auto args = e.args();
    Number c = args[0].is_number() ? *number_of(args[0]) : Number::of(1);
    bool split_sign =
        args[0].is_number() && compare_numbers(c, Number::of(0)) == -1 && !c.is_exact(-1) && c.n != INT64_MIN;
    if (split_sign) {  // sympy writes -2*s0 as Mul(Integer(-1), Integer(2), s0)
      write_integer(-1);
      out += ", ";
      write(expr_of(Number::of(-1) * c));
      args = args.subspan(1);
      out += ", ";
    }
    write_list(args);
    out += ')';
  }
};

}  // namespace

std::string to_infix(const Expr& e) {
  Infix p;
  p.write(e);
  return std::move(p.out);
}

std::string to_srepr(const Expr& e) {
  Srepr p;
  p.write(e);
  return std::move(p.out);
}

void append_text(std::string& out, const Expr& e) { out += to_infix(e); }

}  // namespace tenon::sym

#include "tenon/plan/symbols.h"

#include "tenon/base/error.h"
#include "tenon/sym/print.h"

namespace tenon::plan {

using package::Expr;
using sym::Kind;

bool is_real(SymInt e) {
  if (e.is_int() || e.is_boolean_typed()) return false;
  if (e.is_symbol()) return !e.traits().integer;
  return !e.is_integer_typed();
}

package::Id Symbols::declare(SymInt symbol, sym::Range range) {
  tenon_type type = is_real(symbol) ? TENON_REAL : TENON_INTEGER;
  package::Id id = tables_.symbol(symbol.name(), range.lo, range.hi, type);
  ids_.insert_or_assign(symbol.name(), Known{id, type});
  return id;
}

package::Id Symbols::fresh(std::string_view name, tenon_type type) {
  return tables_.symbol(name, INT64_MIN, INT64_MAX, type);
}

package::Id Symbols::id(SymInt symbol) const {
  auto found = ids_.find(symbol.name());
  require(found != ids_.end(), "nothing tells the value of the symbol ", symbol,
          ", which a size or a number of the program depends on");
  return found->second.id;
}

Expr Symbols::real(SymInt e) const {
  Expr value = expr(e);
  return value.type() == TENON_REAL ? value : package::to_real(value);
}

namespace {

[[noreturn]] void cannot(SymInt e) {
  fail_unsupported(text("the expression ", e, " has no form in a compiled program; run the .pt2 file instead"));
}

Expr both(tenon_opcode integers, tenon_opcode reals, Expr a, Expr b) {
  if (a.type() == TENON_INTEGER && b.type() == TENON_INTEGER) return Expr::apply(integers, {a, b});
  if (a.type() == TENON_INTEGER) a = package::to_real(a);
  if (b.type() == TENON_INTEGER) b = package::to_real(b);
  return Expr::apply(reals, {a, b});
}

}  // namespace

// The runtime takes expressions of some length and depth.
Expr Symbols::shortened(Expr e) const {
  constexpr size_t longest = 48;
  if (e.words().size() <= longest) return e;
  return Expr::symbol(bind_(e), e.type());
}

Expr Symbols::whole(SymInt e) const {
  if (e.is_int()) return e.as_int();
  auto arg = [&](size_t i) { return expr(e.args()[i]); };
  auto fold = [&](tenon_opcode integers, tenon_opcode reals) {
    Expr out = arg(0);
    for (size_t i = 1; i < e.args().size(); ++i) out = shortened(both(integers, reals, out, arg(i)));
    return out;
  };
  auto integers = [&](tenon_opcode opcode) {
    Expr a = arg(0), b = arg(1);
    if (a.type() != TENON_INTEGER || b.type() != TENON_INTEGER) cannot(e);
    return Expr::apply(opcode, {a, b});
  };
  auto rounded = [&](tenon_opcode opcode) {
    Expr a = arg(0);
    return a.type() == TENON_INTEGER ? a : Expr::apply(opcode, {a});
  };
  auto negated = [](const Expr& a) { return Expr::apply(TENON_OP_NOT, {a}); };
  switch (e.kind()) {
    case Kind::integer: return e.as_int();
    case Kind::rational:
    case Kind::real: return Expr::real(e.real_value());
    case Kind::boolean: return static_cast<int64_t>(e.boolean_value());
    case Kind::symbol: {
      auto known = ids_.find(e.name());
      if (known == ids_.end())
        fail_unsupported(text("the size ", e,
                              ", which only the data tell, is needed before they do, for the sizes of an ",
                              "input; run the .pt2 file instead"));
      return Expr::symbol(id(e), known->second.type);
    }
    case Kind::add: return fold(TENON_OP_ADD, TENON_OP_REAL_ADD);
    case Kind::mul: return fold(TENON_OP_MUL, TENON_OP_REAL_MUL);
    case Kind::pow: {
      auto exponent = e.args()[1].constant();
      Expr base = arg(0);
      if (base.type() != TENON_INTEGER || !exponent || *exponent < 0) cannot(e);
      return Expr::apply(TENON_OP_POW, {base, *exponent});
    }
    case Kind::max: return fold(TENON_OP_MAX, TENON_OP_REAL_MAX);
    case Kind::min: return fold(TENON_OP_MIN, TENON_OP_REAL_MIN);
    case Kind::mod: return integers(TENON_OP_MOD);
    case Kind::floor_div: return integers(TENON_OP_FLOOR_DIV);
    case Kind::true_div:
    case Kind::float_true_div: return Expr::apply(TENON_OP_REAL_DIV, {real(e.args()[0]), real(e.args()[1])});
    case Kind::to_float: return real(e.args()[0]);
    case Kind::trunc: return rounded(TENON_OP_TRUNC);
    case Kind::trunc_float: return package::to_real(rounded(TENON_OP_TRUNC));
    case Kind::ceil: return rounded(TENON_OP_CEIL);
    case Kind::floor: return rounded(TENON_OP_FLOOR);
    case Kind::round: return rounded(TENON_OP_ROUND);
    case Kind::bit_and: return integers(TENON_OP_AND);
    case Kind::bit_or: return integers(TENON_OP_OR);
    case Kind::lshift: return integers(TENON_OP_SHL);
    case Kind::rshift: return integers(TENON_OP_SHR);
    case Kind::eq: return both(TENON_OP_EQ, TENON_OP_REAL_EQ, arg(0), arg(1));
    case Kind::ne: return negated(both(TENON_OP_EQ, TENON_OP_REAL_EQ, arg(0), arg(1)));
    case Kind::lt: return both(TENON_OP_LT, TENON_OP_REAL_LT, arg(0), arg(1));
    case Kind::le: return both(TENON_OP_LE, TENON_OP_REAL_LE, arg(0), arg(1));
    case Kind::gt: return both(TENON_OP_LT, TENON_OP_REAL_LT, arg(1), arg(0));
    case Kind::ge: return both(TENON_OP_LE, TENON_OP_REAL_LE, arg(1), arg(0));
    case Kind::logical_and: return fold(TENON_OP_AND, TENON_OP_REAL_MUL);
    case Kind::logical_or: return fold(TENON_OP_OR, TENON_OP_REAL_ADD);
    case Kind::logical_not: return negated(arg(0));
    case Kind::piecewise: {
      size_t last = e.args().size() - 2;  // value, condition, value, condition, ...
      Expr out = arg(last);
      for (size_t i = last; i >= 2; i -= 2) {
        Expr value = arg(i - 2);
        if (value.type() != out.type()) {
          if (value.type() == TENON_INTEGER) value = package::to_real(value);
          else out = package::to_real(out);
        }
        out = shortened(package::select(arg(i - 1), value, out));
      }
      return out;
    }
    case Kind::float_pow: {  // by 0.5: the root, as sym::Number has it
      SymInt exponent = e.args()[1];
      bool constant = exponent.is(Kind::real) || exponent.is(Kind::rational);
      if (!constant || exponent.real_value() != 0.5) cannot(e);
      return Expr::apply(TENON_OP_REAL_SQRT, {real(e.args()[0])});
    }
    case Kind::unknown_call:
      if (e.name() != "OpaqueUnaryFn_sqrt" || e.args().size() != 1) cannot(e);
      return Expr::apply(TENON_OP_REAL_SQRT, {real(e.args()[0])});
    case Kind::round_decimal: cannot(e);
  }
  unreachable();
}

Expr Symbols::param(const loop::Param& param) const {
  switch (param.kind) {
    case loop::Param::Kind::integer:
    case loop::Param::Kind::condition: return expr(param.value);
    case loop::Param::Kind::real: return real(param.value);
  }
  unreachable();
}

std::vector<Expr> Symbols::list(const Sizes& sizes) const {
  std::vector<Expr> out;
  for (SymInt e : sizes) out.push_back(expr(e));
  return out;
}

}  // namespace tenon::plan

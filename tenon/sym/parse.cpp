// Sympy's spellings: srepr and infix.
#include "tenon/sym/parse.h"

#include "tenon/sym/parser.h"

namespace tenon::sym {
namespace {

constexpr Function sympy_functions[] = {
    {"Add", Kind::add, 0, any_number},
    {"Mul", Kind::mul, 0, any_number},
    {"Pow", Kind::pow, 2, 2},
    {"PowByNatural", Kind::pow, 2, 2},
    {"FloatPow", Kind::float_pow, 2, 2},
    {"Max", Kind::max, 1, any_number},
    {"Min", Kind::min, 1, any_number},
    {"Mod", Kind::mod, 2, 2},
    {"PythonMod", Kind::mod, 2, 2},
    {"FloorDiv", Kind::floor_div, 2, 2},
    {"CleanDiv", Kind::floor_div, 2, 2},
    {"IntTrueDiv", Kind::true_div, 2, 2},
    {"FloatTrueDiv", Kind::float_true_div, 2, 2},
    {"ToFloat", Kind::to_float, 1, 1},
    {"TruncToInt", Kind::trunc, 1, 1},
    {"Trunc", Kind::trunc, 1, 1},
    {"TruncToFloat", Kind::trunc_float, 1, 1},
    {"CeilToInt", Kind::ceil, 1, 1},
    {"ceiling", Kind::ceil, 1, 1},
    {"FloorToInt", Kind::floor, 1, 1},
    {"floor", Kind::floor, 1, 1},
    {"RoundToInt", Kind::round, 1, 1},
    {"RoundDecimal", Kind::round_decimal, 2, 2},
    {"BitwiseFn_bitwise_and", Kind::bit_and, 2, 2},
    {"BitwiseFn_bitwise_or", Kind::bit_or, 2, 2},
    {"LShift", Kind::lshift, 2, 2},
    {"RShift", Kind::rshift, 2, 2},
    {"Equality", Kind::eq, 2, 2},
    {"Eq", Kind::eq, 2, 2},
    {"Unequality", Kind::ne, 2, 2},
    {"Ne", Kind::ne, 2, 2},
    {"GreaterThan", Kind::ge, 2, 2},
    {"Ge", Kind::ge, 2, 2},
    {"StrictGreaterThan", Kind::gt, 2, 2},
    {"Gt", Kind::gt, 2, 2},
    {"LessThan", Kind::le, 2, 2},
    {"Le", Kind::le, 2, 2},
    {"StrictLessThan", Kind::lt, 2, 2},
    {"Lt", Kind::lt, 2, 2},
    {"And", Kind::logical_and, 0, any_number},
    {"Or", Kind::logical_or, 0, any_number},
    {"Not", Kind::logical_not, 1, 1},
};

SymbolTraits guess_traits(std::string_view name) {
  if (starts_with(name, "zf") || starts_with(name, "zuf")) return {.integer = false, .real = starts_with(name, "zf")};
  bool size = name.size() > 1 && name[0] == 's' && name.find_first_not_of("0123456789", 1) == std::string_view::npos;
  return {.positive = size};
}

class SympyParser : public Parser {
 public:
  SympyParser(std::string_view text, std::span<const Expr> known) : Parser(text), known_(known) {}

 private:
  Expr divide(const Expr& a, const Expr& b) override { return a * pow(b, -1); }  // exactly: s0/2 is half of s0

  Expr name() override {
    std::string_view name = lex_.take().text;
    if (lex_.accept("(")) return function(name);
    if (name == "true" || name == "True") return Expr::boolean(true);
    if (name == "false" || name == "False") return Expr::boolean(false);
    if (name == "oo" || name == "int_oo" || name == "inf") return Expr::real(std::numeric_limits<double>::infinity());
    if (name == "nan") return Expr::real(std::numeric_limits<double>::quiet_NaN());
    for (const Expr& k : known_)
      if (k.is_symbol() && k.name() == name) return k;
    return Expr::symbol(name, guess_traits(name));
  }

  Expr function(std::string_view name) {
    if (name == "Symbol" || name == "Dummy") return symbol();
    if (name == "Integer") {
      int64_t value = signed_integer();
      lex_.expect_sign(")");
      return value;
    }
    if (name == "Rational") {
      int64_t n = signed_integer();
      lex_.expect_sign(",");
      int64_t d = signed_integer();
      lex_.expect_sign(")");
      return Expr::rational(n, d);
    }
    if (name == "Float") return float_call();
    if (name == "Piecewise") return piecewise_call();
    std::vector<Expr> args = arguments();
    auto need = [&](size_t n) {
      if (args.size() != n)
        lex_.complain(text("expected ", n, " arguments for ", name, ", got ", args.size(), " before this"));
    };
    if (name == "CeilDiv") return need(2), ceil_div(args[0], args[1]);
    if (name == "ModularIndexing") return need(3), mod(floor_div(args[0], args[1]), args[2]);
    if (name == "Where") return need(3), where(args[0], args[1], args[2]);
    if (name == "Identity") return need(1), args[0];
    if (name == "Abs") return need(1), max(args[0], -args[0]);
    return call(find_function(sympy_functions, name), name, args);
  }

  Expr symbol() {
    if (lex_.now().kind != TokenKind::string) lex_.complain("expected the name of a symbol in quotes");
    std::string name;
    std::string_view written = lex_.take().text;
    for (size_t i = 0; i < written.size(); i++) {
      if (written[i] == '\\' && i + 1 < written.size()) i++;
      name += written[i];
    }
    SymbolTraits traits{.integer = false};
    while (lex_.accept(",")) {
      if (lex_.now().kind != TokenKind::name) lex_.complain("expected an assumption such as integer=True");
      std::string_view word = lex_.take().text;
      lex_.expect_sign("=");
      bool yes = accept_word("True");
      if (!yes && !accept_word("False") && lex_.now().kind != TokenKind::integer)
        lex_.complain("expected True or False");
      if (lex_.now().kind == TokenKind::integer) lex_.take();  // dummy_index=3
      if (word == "integer") traits.integer = yes;
      if (word == "real") traits.real = yes;
      if (word == "positive") traits.positive = yes;
      if (word == "nonnegative") traits.nonnegative = yes;
    }
    lex_.expect_sign(")");
    if (name.empty()) fail("a symbol has an empty name");
    return Expr::symbol(name, traits);
  }

  Expr float_call() {
    if (lex_.now().kind != TokenKind::string) lex_.complain("expected a number in quotes");
    Expr value = real(lex_.take().text);
    while (lex_.accept(",")) {  // precision=53, dps=15
      if (lex_.now().kind != TokenKind::name) lex_.complain("expected precision=53");
      lex_.take();
      lex_.expect_sign("=");
      integer();
    }
    lex_.expect_sign(")");
    return value;
  }

  Expr piecewise_call() {
    std::vector<Expr> parts;
    do {
      accept_word("ExprCondPair");
      lex_.expect_sign("(");
      count();
      parts.push_back(choice());
      lex_.expect_sign(",");
      parts.push_back(choice());
      lex_.expect_sign(")");
    } while (lex_.accept(","));
    lex_.expect_sign(")");
    return piecewise(parts);
  }

  std::span<const Expr> known_;
};

}  // namespace

Expr parse(std::string_view text, std::span<const Expr> known) { return SympyParser(text, known).all("expression"); }

}  // namespace tenon::sym

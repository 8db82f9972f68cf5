#include "tenon/sym/parse.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <vector>

#include "tenon/base/error.h"
#include "tenon/sym/lexer.h"
#include "tenon/sym/number.h"

namespace tenon::sym {
namespace {

enum class Dialect : uint8_t { sympy, python };

struct Function {
  std::string_view name;
  Kind kind;
  size_t least, most;
};
constexpr size_t any = std::numeric_limits<size_t>::max();

constexpr Function sympy_functions[] = {
    {"Add", Kind::add, 0, any},
    {"Mul", Kind::mul, 0, any},
    {"Pow", Kind::pow, 2, 2},
    {"PowByNatural", Kind::pow, 2, 2},
    {"FloatPow", Kind::float_pow, 2, 2},
    {"Max", Kind::max, 1, any},
    {"Min", Kind::min, 1, any},
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
    {"And", Kind::logical_and, 0, any},
    {"Or", Kind::logical_or, 0, any},
    {"Not", Kind::logical_not, 1, 1},
};

constexpr Function python_functions[] = {
    {"max", Kind::max, 1, any},
    {"min", Kind::min, 1, any},
    {"torch.sym_max", Kind::max, 1, any},
    {"torch.sym_min", Kind::min, 1, any},
    {"math.trunc", Kind::trunc, 1, 1},
    {"math.floor", Kind::floor, 1, 1},
    {"math.ceil", Kind::ceil, 1, 1},
    {"int", Kind::trunc, 1, 1},
    {"torch.sym_int", Kind::trunc, 1, 1},
    {"float", Kind::to_float, 1, 1},
    {"torch.sym_float", Kind::to_float, 1, 1},
    {"torch.sym_not", Kind::logical_not, 1, 1},
    {"round", Kind::round, 1, 2},
};

// Methods of tensors that a guard may call, without arguments.
bool is_question(std::string_view method) {
  for (std::string_view name : {"size", "stride", "storage_offset", "dim", "numel", "item"})
    if (method == name) return true;
  return false;
}

const Function* find_function(std::span<const Function> in, std::string_view name) {
  for (const Function& f : in)
    if (f.name == name) return &f;
  return nullptr;
}

SymbolTraits guess_traits(std::string_view name) {
  if (starts_with(name, "zf") || starts_with(name, "zuf")) return {.integer = false, .real = starts_with(name, "zf")};
  bool size = name.size() > 1 && name[0] == 's' && name.find_first_not_of("0123456789", 1) == std::string_view::npos;
  return {.positive = size};
}

Expr absolute(Expr a) { return max(a, -a); }

class Parser {
 public:
  Parser(std::string_view text, Dialect dialect, std::span<const Expr> known)
      : lex_(text), dialect_(dialect), known_(known) {}

  Expr all() {
    Expr e = choice();
    if (lex_.now().kind != TokenKind::end) lex_.complain("expected the expression to end here");
    return e;
  }

 private:
  // Held by every rule that can contain itself.
  struct Level {
    Parser& p;
    explicit Level(Parser& p) : p(p) {
      if (++p.depth_ > max_parse_depth) p.lex_.complain(text("nested deeper than ", max_parse_depth, " levels"));
    }
    ~Level() { p.depth_--; }
  };

  void count() {
    if (++nodes_ > max_parse_nodes) lex_.complain(text("more than ", max_parse_nodes, " parts"));
  }

  bool accept_word(std::string_view word) {
    if (!lex_.now().is_word(word)) return false;
    lex_.take();
    return true;
  }

  Expr choice() {  // a if condition else b
    Level level(*this);
    Expr a = disjunction();
    if (!accept_word("if")) return a;
    Expr condition = disjunction();
    if (!accept_word("else")) lex_.complain("expected 'else'");
    return where(condition, a, choice());
  }

  Expr disjunction() {
    std::vector<Expr> parts = {conjunction()};
    while (accept_word("or")) parts.push_back(conjunction());
    return parts.size() == 1 ? parts[0] : logical_or(parts);
  }

  Expr conjunction() {
    std::vector<Expr> parts = {negation()};
    while (accept_word("and")) parts.push_back(negation());
    return parts.size() == 1 ? parts[0] : logical_and(parts);
  }

  Expr negation() {
    if (!lex_.now().is_word("not")) return comparison();
    Level level(*this);
    lex_.take();
    return logical_not(negation());
  }

  std::optional<Kind> relation_sign() {
    static constexpr std::pair<std::string_view, Kind> signs[] = {{"==", Kind::eq}, {"!=", Kind::ne}, {"<", Kind::lt},
                                                                  {"<=", Kind::le}, {">", Kind::gt},  {">=", Kind::ge}};
    for (auto [sign, kind] : signs)
      if (lex_.accept(sign)) return kind;
    return std::nullopt;
  }

  Expr comparison() {  // a <= b < c means both
    Expr left = bits(0);
    std::vector<Expr> all;
    while (auto kind = relation_sign()) {
      Expr right = bits(0);
      Expr both[] = {left, right};
      all.push_back(make(*kind, both));
      left = right;
    }
    if (all.empty()) return left;
    return all.size() == 1 ? all[0] : logical_and(all);
  }

  Expr bits(int level) {  // | then & then shifts, the loosest first
    if (level == 3) return additive();
    static constexpr std::string_view signs[][2] = {{"|", "|"}, {"&", "&"}, {"<<", ">>"}};
    std::vector<Expr> parts = {bits(level + 1)};
    while (lex_.now().is(signs[level][0]) || lex_.now().is(signs[level][1])) {
      std::string_view sign = lex_.take().text;
      Expr right = bits(level + 1);
      bool booleans = parts.back().is_boolean_typed() && right.is_boolean_typed();
      if (booleans && level < 2) {
        parts.push_back(right);
        continue;
      }
      Expr left = junction(level, parts);
      parts = {level == 0     ? bit_or(left, right)
               : level == 1   ? bit_and(left, right)
               : sign == "<<" ? lshift(left, right)
                              : rshift(left, right)};
    }
    return junction(level, parts);
  }

  static Expr junction(int level, const std::vector<Expr>& parts) {
    if (parts.size() == 1) return parts[0];
    return level == 0 ? logical_or(parts) : logical_and(parts);
  }

  Expr additive() {
    std::vector<Expr> terms = {multiplicative()};
    while (lex_.now().is("+") || lex_.now().is("-")) {
      bool minus = lex_.take().text == "-";
      Expr t = multiplicative();
      terms.push_back(minus ? -t : t);
    }
    return terms.size() == 1 ? terms[0] : sum(terms);
  }

  Expr multiplicative() {
    std::vector<Expr> factors = {unary()};
    auto so_far = [&] { return factors.size() == 1 ? factors[0] : product(factors); };
    for (;;) {
      if (lex_.accept("*")) factors.push_back(unary());
      else if (lex_.accept("//")) {
        Expr left = so_far();
        factors = {floor_div(left, unary())};
      } else if (lex_.accept("%")) {
        Expr left = so_far();
        factors = {mod(left, unary())};
      } else if (lex_.accept("/")) {
        Expr left = so_far();
        factors = {divide(left, unary())};
      } else return so_far();
    }
  }

  Expr divide(Expr a, Expr b) {
    if (dialect_ == Dialect::python)
      return a.is_integer_typed() && b.is_integer_typed() ? true_div(a, b) : float_true_div(a, b);
    return a * pow(b, -1);  // sympy divides exactly: s0/2 is half of s0
  }

  Expr unary() {
    if (lex_.now().is("-") || lex_.now().is("+") || lex_.now().is("~")) {
      Level level(*this);
      char sign = lex_.take().text[0];
      if (sign == '-' && lex_.now().kind == TokenKind::integer && lex_.now().text == "9223372036854775808") {
        lex_.take();
        return std::numeric_limits<int64_t>::min();
      }
      Expr e = unary();
      if (sign == '~') return e.is_boolean_typed() ? logical_not(e) : -e - 1;
      return sign == '-' ? -e : e + 0;
    }
    Expr base = atom();
    if (!lex_.accept("**")) return base;
    Level level(*this);
    return pow(base, unary());  // binds to the right
  }

  static bool is_keyword(const Token& t) {
    return t.is_word("not") || t.is_word("and") || t.is_word("or") || t.is_word("if") || t.is_word("else");
  }

  Expr atom() {
    count();
    const Token& t = lex_.now();
    if (lex_.accept("(")) {
      Expr e = choice();
      lex_.expect_sign(")");
      return e;
    }
    if (t.kind == TokenKind::integer) return integer();
    if (t.kind == TokenKind::real) return real(lex_.take().text);
    if (is_keyword(t)) lex_.complain("expected a number, a name or '('");
    if (t.kind == TokenKind::name) return dialect_ == Dialect::python ? python_name() : sympy_name();
    lex_.complain("expected a number, a name or '('");
  }

  int64_t integer() {
    if (lex_.now().kind != TokenKind::integer) lex_.complain("expected an integer");
    int64_t value = 0;
    std::string_view digits = lex_.now().text;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size())
      lex_.complain("expected an integer that fits into 64 bits");
    lex_.take();
    return value;
  }

  int64_t signed_integer() {
    if (!lex_.accept("-")) return integer();
    if (lex_.now().kind == TokenKind::integer && lex_.now().text == "9223372036854775808") {
      lex_.take();
      return std::numeric_limits<int64_t>::min();
    }
    return -integer();
  }

  Expr real(std::string_view digits) {
    double value = 0;
    bool plus = starts_with(digits, "+");
    const char* begin = digits.data() + plus;
    auto [end, error] = std::from_chars(begin, digits.data() + digits.size(), value);
    if (end != digits.data() + digits.size() || (error != std::errc() && error != std::errc::result_out_of_range))
      fail("expected a decimal number, got ", quoted(digits));
    if (error == std::errc::result_out_of_range) fail("the number ", quoted(digits), " does not fit into a double");
    return Expr::real(value);
  }

  Expr sympy_name() {
    std::string_view name = lex_.take().text;
    if (lex_.accept("(")) return sympy_call(name);
    if (name == "true" || name == "True") return Expr::boolean(true);
    if (name == "false" || name == "False") return Expr::boolean(false);
    if (name == "oo" || name == "int_oo" || name == "inf") return Expr::real(std::numeric_limits<double>::infinity());
    if (name == "nan") return Expr::real(std::numeric_limits<double>::quiet_NaN());
    for (Expr k : known_)
      if (k.is_symbol() && k.name() == name) return k;
    return Expr::symbol(name, guess_traits(name));
  }

  Expr sympy_call(std::string_view name) {
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
    if (name == "Abs") return need(1), absolute(args[0]);
    return call(find_function(sympy_functions, name), name, args);
  }

  Expr call(const Function* f, std::string_view name, const std::vector<Expr>& args) {
    if (!f) return Expr::unknown_call(name, args);
    if (args.size() < f->least || args.size() > f->most)
      fail("expected ", f->least, f->most == any ? " or more" : "", " arguments for ", name, ", got ", args.size());
    return make(f->kind, args);
  }

  std::vector<Expr> arguments() {  // up to and with the closing parenthesis
    std::vector<Expr> args;
    if (lex_.accept(")")) return args;
    do args.push_back(choice());
    while (lex_.accept(","));
    lex_.expect_sign(")");
    return args;
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

  // ---- Python conditions over inputs ----

  Expr python_name() {
    size_t start = lex_.now().at;
    lex_.take();
    while (lex_.now().is(".")) {
      lex_.take();
      if (lex_.now().kind != TokenKind::name) lex_.complain("expected a name after '.'");
      lex_.take();
    }
    std::string_view name = lex_.text().substr(start, lex_.last_end() - start);
    if (name == "True" || name == "False") return Expr::boolean(name == "True");
    if (lex_.now().is("(")) {
      if (name == "abs") return absolute(single_argument());
      if (const Function* f = find_function(python_functions, name)) {
        lex_.take();
        std::vector<Expr> args = arguments();
        if (f->kind == Kind::round && args.size() == 2) return round_decimal(args[0], args[1]);
        return call(f, name, args);
      }
    }
    if (name != "L" || !lex_.now().is("["))
      fail("expected an input such as L['x'] or a known function, got ", quoted(name));
    chain();
    return Expr::symbol(lex_.text().substr(start, lex_.last_end() - start));
  }

  Expr single_argument() {
    lex_.expect_sign("(");
    std::vector<Expr> args = arguments();
    if (args.size() != 1) fail("expected 1 argument for abs, got ", args.size());
    return args[0];
  }

  /// The rest of a source: attributes, questions to a tensor and constant subscripts.
  void chain() {
    for (std::string_view attribute;;) {
      if (lex_.accept(".")) {
        if (lex_.now().kind != TokenKind::name) lex_.complain("expected a name after '.'");
        attribute = lex_.take().text;
      } else if (lex_.now().is("(")) {
        if (!is_question(attribute)) lex_.complain("expected size(), stride() or another question to a tensor");
        lex_.take();
        lex_.expect_sign(")");
        attribute = {};
      } else if (lex_.accept("[")) {
        if (lex_.now().kind != TokenKind::string) lex_.accept("-");
        if (lex_.now().kind != TokenKind::string && lex_.now().kind != TokenKind::integer)
          lex_.complain("expected a text or a number as a subscript");
        count();
        lex_.take();
        lex_.expect_sign("]");
        attribute = {};
      } else {
        return;
      }
    }
  }

  Lexer lex_;
  Dialect dialect_;
  std::span<const Expr> known_;
  int depth_ = 0, nodes_ = 0;
};

Expr parse_as(Dialect dialect, std::string_view what, std::string_view text, std::span<const Expr> known) {
  try {
    return Parser(text, dialect, known).all();
  } catch (const Error& e) { fail("cannot read the ", what, " ", quoted(text), ": ", std::string_view(e.what())); }
}

}  // namespace

Expr parse(std::string_view text, std::span<const Expr> known) {
  return parse_as(Dialect::sympy, "expression", text, known);
}

Expr parse_guard(std::string_view text) { return parse_as(Dialect::python, "guard", text, {}); }

}  // namespace tenon::sym

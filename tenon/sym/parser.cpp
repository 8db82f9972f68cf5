// The rules of the grammar, from the loosest sign to the tightest.
#include "tenon/sym/parser.h"

#include <charconv>

namespace tenon::sym {
namespace {

bool is_keyword(const Token& t) {
  return t.is_word("not") || t.is_word("and") || t.is_word("or") || t.is_word("if") || t.is_word("else");
}

Expr junction(int level, const std::vector<Expr>& parts) {
  if (parts.size() == 1) return parts[0];
  return level == 0 ? logical_or(parts) : logical_and(parts);
}

}  // namespace

const Function* find_function(std::span<const Function> in, std::string_view name) {
  for (const Function& f : in)
    if (f.name == name) return &f;
  return nullptr;
}

Expr Parser::all(std::string_view what) {
  try {
    lex_ = Lexer(text_);
    Expr e = choice();
    if (lex_.now().kind != TokenKind::end) lex_.complain("expected the expression to end here");
    return e;
  } catch (const Error& e) { fail("cannot read the ", what, " ", quoted(text_), ": ", std::string_view(e.what())); }
}

Parser::Level::Level(Parser& p) : p(p) {
  if (++p.depth_ > max_parse_depth) p.lex_.complain(text("nested deeper than ", max_parse_depth, " levels"));
}

void Parser::count() {
  if (++nodes_ > max_parse_nodes) lex_.complain(text("more than ", max_parse_nodes, " parts"));
}

bool Parser::accept_word(std::string_view word) {
  if (!lex_.now().is_word(word)) return false;
  lex_.take();
  return true;
}

Expr Parser::choice() {  // a if condition else b
  Level level(*this);
  Expr a = disjunction();
  if (!accept_word("if")) return a;
  Expr condition = disjunction();
  if (!accept_word("else")) lex_.complain("expected 'else'");
  return where(condition, a, choice());
}

Expr Parser::disjunction() {
  std::vector<Expr> parts = {conjunction()};
  while (accept_word("or")) parts.push_back(conjunction());
  return parts.size() == 1 ? parts[0] : logical_or(parts);
}

Expr Parser::conjunction() {
  std::vector<Expr> parts = {negation()};
  while (accept_word("and")) parts.push_back(negation());
  return parts.size() == 1 ? parts[0] : logical_and(parts);
}

Expr Parser::negation() {
  if (!lex_.now().is_word("not")) return comparison();
  Level level(*this);
  lex_.take();
  return logical_not(negation());
}

std::optional<Kind> Parser::relation_sign() {
  static constexpr std::pair<std::string_view, Kind> signs[] = {{"==", Kind::eq}, {"!=", Kind::ne}, {"<", Kind::lt},
                                                                {"<=", Kind::le}, {">", Kind::gt},  {">=", Kind::ge}};
  for (auto [sign, kind] : signs)
    if (lex_.accept(sign)) return kind;
  return std::nullopt;
}

Expr Parser::comparison() {  // a <= b < c means both
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

Expr Parser::bits(int level) {  // | then & then shifts, the loosest first
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

Expr Parser::additive() {
  std::vector<Expr> terms = {multiplicative()};
  while (lex_.now().is("+") || lex_.now().is("-")) {
    bool minus = lex_.take().text == "-";
    Expr t = multiplicative();
    terms.push_back(minus ? -t : t);
  }
  return terms.size() == 1 ? terms[0] : sum(terms);
}

Expr Parser::multiplicative() {
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

Expr Parser::unary() {
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

Expr Parser::atom() {
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
  if (t.kind == TokenKind::name) return name();
  lex_.complain("expected a number, a name or '('");
}

int64_t Parser::integer() {
  if (lex_.now().kind != TokenKind::integer) lex_.complain("expected an integer");
  int64_t value = 0;
  std::string_view digits = lex_.now().text;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) value = beyond_64_bits();
  lex_.take();
  return value;
}

int64_t Parser::signed_integer() {
  if (!lex_.accept("-")) return integer();
  if (lex_.now().kind == TokenKind::integer && lex_.now().text == "9223372036854775808") {
    lex_.take();
    return std::numeric_limits<int64_t>::min();
  }
  return -integer();
}

Expr Parser::real(std::string_view digits) {
  double value = 0;
  bool plus = starts_with(digits, "+");
  const char* begin = digits.data() + plus;
  auto [end, error] = std::from_chars(begin, digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || (error != std::errc() && error != std::errc::result_out_of_range))
    fail("expected a decimal number, got ", quoted(digits));
  if (error == std::errc::result_out_of_range) fail("the number ", quoted(digits), " does not fit into a double");
  return Expr::real(value);
}

std::vector<Expr> Parser::arguments() {  // up to and with the closing parenthesis
  std::vector<Expr> args;
  if (lex_.accept(")")) return args;
  do args.push_back(choice());
  while (lex_.accept(","));
  lex_.expect_sign(")");
  return args;
}

Expr Parser::call(const Function* f, std::string_view name, const std::vector<Expr>& args) {
  if (!f) return Expr::unknown_call(name, args);
  if (args.size() < f->least || args.size() > f->most)
    fail("expected ", f->least, f->most == any_number ? " or more" : "", " arguments for ", name, ", got ",
         args.size());
  return make(f->kind, args);
}

}  // namespace tenon::sym

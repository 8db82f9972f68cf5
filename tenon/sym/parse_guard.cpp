// Python's spelling: conditions over the inputs of a program.
#include "tenon/sym/parser.h"

namespace tenon::sym {
namespace {

constexpr Function python_functions[] = {
    {"max", Kind::max, 1, any_number},
    {"min", Kind::min, 1, any_number},
    {"torch.sym_max", Kind::max, 1, any_number},
    {"torch.sym_min", Kind::min, 1, any_number},
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

class GuardParser : public Parser {
 public:
  using Parser::Parser;

 private:
  Expr divide(const Expr& a, const Expr& b) override {
    return a.is_integer_typed() && b.is_integer_typed() ? true_div(a, b) : float_true_div(a, b);
  }

  // No size is that large: the bound holds either way.
  int64_t beyond_64_bits() override { return INT64_MAX; }

  Expr name() override {
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
      if (name == "abs") {
        Expr x = single_argument();
        return max(x, -x);
      }
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
};

}  // namespace

Expr parse_guard(std::string_view text) { return GuardParser(text).all("guard"); }

}  // namespace tenon::sym

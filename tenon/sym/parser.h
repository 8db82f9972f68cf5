// The grammar that both spellings of expressions share: signs, numbers, parentheses, calls. What a name means, and a
// division, is said by the spelling. For the parse files only.
#pragma once
#include <limits>
#include <span>
#include <vector>

#include "tenon/sym/lexer.h"
#include "tenon/sym/parse.h"

namespace tenon::sym {

/// A function that has a kind of its own, and how many arguments it takes.
struct Function {
  std::string_view name;
  Kind kind;
  size_t least, most;
};
constexpr size_t any_number = std::numeric_limits<size_t>::max();
const Function* find_function(std::span<const Function> in, std::string_view name);

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}
  virtual ~Parser() = default;
  /// The whole text. An Error says what the text was to be, for example "guard".
  Expr all(std::string_view what);

 protected:
  virtual Expr name() = 0;  // what begins with one
  virtual Expr divide(const Expr& a, const Expr& b) = 0;
  virtual int64_t beyond_64_bits() { lex_.complain("expected an integer that fits into 64 bits"); }

  // Held by every rule that can contain itself.
  struct Level {
    Parser& p;
    explicit Level(Parser& p);
    ~Level() { p.depth_--; }
  };
  void count();
  bool accept_word(std::string_view word);

  Expr choice();
  Expr disjunction();
  Expr conjunction();
  Expr negation();
  Expr comparison();
  Expr bits(int level);
  Expr additive();
  Expr multiplicative();
  Expr unary();
  Expr atom();
  int64_t integer();
  int64_t signed_integer();
  Expr real(std::string_view digits);
  std::vector<Expr> arguments();
  Expr call(const Function* f, std::string_view name, const std::vector<Expr>& args);

  Lexer lex_{""};

 private:
  std::optional<Kind> relation_sign();

  std::string_view text_;
  int depth_ = 0, nodes_ = 0;
};

}  // namespace tenon::sym

// Splits the text of an expression into tokens. For the parser only.
#pragma once
#include <string>
#include <string_view>

#include "tenon/base/error.h"

namespace tenon::sym {

enum class TokenKind : uint8_t { end, name, integer, real, string, sign };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  // of a string: without its quotes, escapes not undone
  size_t at = 0, end = 0;

  bool is(std::string_view sign) const { return kind == TokenKind::sign && text == sign; }
  bool is_word(std::string_view word) const { return kind == TokenKind::name && text == word; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }

  const Token& now() const { return now_; }
  std::string_view text() const { return text_; }
  size_t last_end() const { return last_end_; }  // where the token before now() ended

  Token take() {
    Token t = now_;
    last_end_ = t.end;
    advance();
    return t;
  }

  bool accept(std::string_view sign) {
    if (!now_.is(sign)) return false;
    take();
    return true;
  }

  void expect_sign(std::string_view sign) {
    if (!accept(sign)) complain(text("expected '", sign, "'"));
  }

  template <class... Parts>
  static std::string text(const Parts&... parts) {
    return tenon::text(parts...);
  }

  [[noreturn]] void complain(std::string_view what) const {
    if (now_.kind == TokenKind::end) fail("at its end: ", what);
    fail("at character ", now_.at + 1, ": ", what, ", got ", quoted(text_.substr(now_.at, now_.end - now_.at), 40));
  }

 private:
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }

  void advance() {
    size_t i = now_.end;
    auto peek = [&](size_t k) { return k < text_.size() ? text_[k] : '\0'; };
    while (i < text_.size() && (text_[i] == ' ' || text_[i] == '\t' || text_[i] == '\n' || text_[i] == '\r')) i++;
    now_ = {.at = i, .end = i};
    if (i == text_.size()) return;
    char c = text_[i];
    size_t j = i + 1;
    if (is_letter(c)) {
      while (is_letter(peek(j)) || is_digit(peek(j))) j++;
      now_.kind = TokenKind::name;
    } else if (is_digit(c) || (c == '.' && is_digit(peek(i + 1)))) {
      now_.kind = TokenKind::integer;
      j = i;
      while (is_digit(peek(j))) j++;
      if (peek(j) == '.') {
        now_.kind = TokenKind::real;
        do j++;
        while (is_digit(peek(j)));
      }
      if (peek(j) == 'e' || peek(j) == 'E') {
        size_t k = j + 1;
        if (peek(k) == '+' || peek(k) == '-') k++;
        if (is_digit(peek(k))) {
          now_.kind = TokenKind::real;
          while (is_digit(peek(k))) k++;
          j = k;
        }
      }
    } else if (c == '\'' || c == '"') {
      while (j < text_.size() && text_[j] != c) j += text_[j] == '\\' ? 2 : 1;
      now_.end = std::min(j + 1, text_.size());
      if (j >= text_.size()) complain("this string does not end");
      now_.kind = TokenKind::string;
      now_.text = text_.substr(i + 1, j - i - 1);
      return;
    } else {
      static constexpr std::string_view doubles[] = {"**", "//", "==", "!=", "<=", ">=", "<<", ">>"};
      static constexpr std::string_view singles = "+-*/%()[],.<>&|~=^:{}";
      now_.kind = TokenKind::sign;
      now_.end = j;
      if (singles.find(c) == std::string_view::npos && c != '!')
        complain("this character has no meaning in an expression");
      for (std::string_view d : doubles)
        if (text_.substr(i, 2) == d) j = i + 2;
      if (c == '!' && j == i + 1) complain("this character has no meaning in an expression");
    }
    now_.end = j;
    now_.text = text_.substr(i, j - i);
  }

  std::string_view text_;
  Token now_;
  size_t last_end_ = 0;
};

}  // namespace tenon::sym

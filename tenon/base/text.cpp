#include "tenon/base/text.h"

#include <charconv>
#include <cmath>

namespace tenon {

void append_text(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "nan";
    return;
  }
  if (std::isinf(value)) {
    out += value < 0 ? "-inf" : "inf";
    return;
  }
  char buffer[40];
  double size = std::fabs(value);
  bool plain = value == 0 || (size >= 1e-4 && size < 1e16);
  auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                           plain ? std::chars_format::fixed : std::chars_format::scientific)
                 .ptr;
  std::string_view digits(buffer, static_cast<size_t>(end - buffer));
  out += digits;
  if (plain && digits.find('.') == std::string_view::npos) out += ".0";
}

void append_integer(std::string& out, int64_t value) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}
void append_integer(std::string& out, uint64_t value) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

std::string join(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i) out += between;
    out += parts[i];
  }
  return out;
}

std::vector<std::string> split(std::string_view s, char at) {
  std::vector<std::string> parts;
  for (;;) {
    size_t next = s.find(at);
    parts.emplace_back(s.substr(0, next));
    if (next == std::string_view::npos) return parts;
    s.remove_prefix(next + 1);
  }
}

bool starts_with(std::string_view s, std::string_view prefix) { return s.substr(0, prefix.size()) == prefix; }
bool ends_with(std::string_view s, std::string_view suffix) {
  return s.size() >= suffix.size() && s.substr(s.size() - suffix.size()) == suffix;
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\n' || s.front() == '\t' || s.front() == '\r'))
    s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\n' || s.back() == '\t' || s.back() == '\r'))
    s.remove_suffix(1);
  return s;
}

namespace {

// The UTF-8 sequence at the front of s: its code point and length; length 0 where there is none. Overlong forms and
// surrogates are none.
struct Character {
  uint32_t code = 0;
  size_t length = 0;
};

Character character_at(std::string_view s) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  size_t length = (byte(0) >> 5) == 6 ? 2 : (byte(0) >> 4) == 14 ? 3 : (byte(0) >> 3) == 30 ? 4 : 0;
  if (length == 0 || length > s.size()) return {};
  uint32_t code = byte(0) & (0xffu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) >> 6) != 2) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, length};
}

bool acts_on_terminal(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) ||          // C0, DEL, C1
         code == 0x061c || code == 0x200e || code == 0x200f ||    // marks of direction
         (code >= 0x202a && code <= 0x202e) ||                    // embeddings and overrides
         (code >= 0x2066 && code <= 0x2069) ||                    // isolates
         code == 0x2028 || code == 0x2029 ||                      // line and paragraph separators
         code == 0xfeff || (code >= 0xe0000 && code <= 0xe007f);  // invisible: byte order mark, tags
}

void append_hex(std::string& out, uint32_t value, int digits) {
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += "0123456789abcdef"[value >> shift & 15];
}

// Moves one character from s to out, escaped where it must be.
void take_character(std::string& out, std::string_view& s) {
  Character c = character_at(s);
  if (c.length > 0 && !acts_on_terminal(c.code)) {
    out += s.substr(0, c.length);
  } else if (c.length <= 1) {
    out += "\\x";
    append_hex(out, static_cast<unsigned char>(s[0]), 2);
  } else {
    out += c.code > 0xffff ? "\\U" : "\\u";
    append_hex(out, c.code, c.code > 0xffff ? 8 : 4);
  }
  s.remove_prefix(c.length == 0 ? 1 : c.length);
}

bool is_plain(char c) { return c >= 0x20 && c < 0x7f; }

}  // namespace

bool is_printable(std::string_view s) {
  while (!s.empty()) {
    Character c = character_at(s);
    if (c.length == 0 || acts_on_terminal(c.code)) return false;
    s.remove_prefix(c.length);
  }
  return true;
}

std::string printable(std::string_view s, Lines lines) {
  std::string out;
  out.reserve(s.size());
  while (!s.empty()) {
    size_t plain = 0;
    while (plain < s.size() && (is_plain(s[plain]) || (lines == Lines::many && (s[plain] == '\n' || s[plain] == '\t'))))
      ++plain;
    out += s.substr(0, plain);
    s.remove_prefix(plain);
    if (!s.empty()) take_character(out, s);
  }
  return out;
}

std::string quoted(std::string_view s, size_t limit) {
  std::string out = "'";
  while (!s.empty()) {
    if (out.size() > limit) {
      out += "...";
      break;
    }
    take_character(out, s);
  }
  return out + "'";
}

std::string shortened(std::string text) {
  if (text.size() <= longest_message) return text;
  constexpr size_t end = 250;
  constexpr std::string_view gap = " [...] ";
  size_t head = longest_message - end - gap.size(), tail = text.size() - end;
  auto inside = [&](size_t at) { return (static_cast<unsigned char>(text[at]) >> 6) == 2; };  // of a character
  while (head > 0 && inside(head)) --head;
  while (tail < text.size() && inside(tail)) ++tail;
  return text.replace(head, tail - head, gap);
}

}  // namespace tenon

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
// Bytes of the UTF-8 sequence at the front of s, 0 where there is none.
size_t utf8_length(std::string_view s) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  size_t length = byte(0) < 0x80         ? 1
                  : (byte(0) >> 5) == 6  ? 2
                  : (byte(0) >> 4) == 14 ? 3
                  : (byte(0) >> 3) == 30 ? 4
                                         : 0;
  if (length > s.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) >> 6) != 2) return 0;
  return length;
}
}  // namespace

std::string quoted(std::string_view s, size_t limit) {
  std::string out = "'";
  while (!s.empty()) {
    if (out.size() > limit) {
      out += "...";
      break;
    }
    size_t length = utf8_length(s);
    auto first = static_cast<unsigned char>(s[0]);
    if (length == 0 || (length == 1 && (first < 0x20 || first == 0x7f))) {
      const char* hex = "0123456789abcdef";
      out += "\\x";
      out += hex[first >> 4];
      out += hex[first & 15];
      s.remove_prefix(1);
    } else {
      out += s.substr(0, length);
      s.remove_prefix(length);
    }
  }
  return out + "'";
}

}  // namespace tenon

// Making text: text(a, b, c) joins its parts. A type becomes printable by an `append_text(std::string&, const T&)`
// beside it.
#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

inline void append_text(std::string& out, std::string_view s) { out += s; }
inline void append_text(std::string& out, const char* s) { out += s; }
inline void append_text(std::string& out, const std::string& s) { out += s; }
inline void append_text(std::string& out, char c) { out += c; }
inline void append_text(std::string& out, bool b) { out += b ? "true" : "false"; }
void append_text(std::string& out,
                 double value);  // shortest text that reads back equal, as Python's repr: 1e-05, 2.0, inf, nan
void append_integer(std::string& out, int64_t value);
void append_integer(std::string& out, uint64_t value);
template <std::integral T>
requires(!std::same_as<T, bool> && !std::same_as<T, char>) void append_text(std::string& out, T value) {
  if constexpr (std::is_signed_v<T>) append_integer(out, static_cast<int64_t>(value));
  else append_integer(out, static_cast<uint64_t>(value));
}
template <class T>
void append_text(std::string& out, const std::vector<T>& items) {  // [a, b, c]
  out += '[';
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ", ";
    first = false;
    append_text(out, item);
  }
  out += ']';
}

template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

std::string join(const std::vector<std::string>& parts, std::string_view between);
std::vector<std::string> split(std::string_view s, char at);
bool starts_with(std::string_view s, std::string_view prefix);
bool ends_with(std::string_view s, std::string_view suffix);
std::string_view trim(std::string_view s);
/// Text from a file made safe to show: what a terminal would act on and bytes that are not UTF-8 become escapes, long
/// text is cut.
std::string quoted(std::string_view s, size_t limit = 80);

/// Whether a terminal would show a character instead of acting on it: no C0 or C1 control character, no sign that turns
/// the direction of writing, no line separator, and valid UTF-8.
bool is_printable(std::string_view s);
enum class Lines : uint8_t { many, one };  // many: line ends and tabs stay as they are
/// The text with everything that is not printable escaped: \x1b for a byte, \u202e for a character.
std::string printable(std::string_view s, Lines lines);

inline constexpr size_t longest_message = 1000;
/// The text, or its beginning and its end where it is longer than a message may be.
std::string shortened(std::string text);

}  // namespace tenon

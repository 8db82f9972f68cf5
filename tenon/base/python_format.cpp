#include "tenon/base/python_format.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "tenon/base/error.h"
#include "tenon/base/text.h"

namespace tenon {
namespace {

constexpr size_t widest = 1000;  // of a field, and of digits behind the point

struct Spec {
  std::string fill = " ";
  char align = 0, sign = '-', group = 0, type = 0;
  bool alternate = false, zeros = false;
  size_t width = 0;
  bool has_precision = false;
  size_t precision = 0;
};

bool is_align(char c) { return c == '<' || c == '>' || c == '=' || c == '^'; }

size_t length_of_character(std::string_view text) {
  auto first = static_cast<unsigned char>(text[0]);
  size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return std::min(length, text.size());
}

size_t number(std::string_view& text, std::string_view whole) {
  size_t out = 0;
  while (!text.empty() && text[0] >= '0' && text[0] <= '9') {
    out = out * 10 + static_cast<size_t>(text[0] - '0');
    require(out <= widest, "the format ", quoted(whole), " asks for more than ", widest, " characters");
    text.remove_prefix(1);
  }
  return out;
}

Spec parse_spec(std::string_view text) {
  std::string_view whole = text;
  Spec out;
  auto take = [&](char c) {
    if (text.empty() || text[0] != c) return false;
    text.remove_prefix(1);
    return true;
  };
  size_t first = text.empty() ? 0 : length_of_character(text);
  if (first && text.size() > first && is_align(text[first])) {
    out.fill = text.substr(0, first);
    out.align = text[first];
    text.remove_prefix(first + 1);
  } else if (!text.empty() && is_align(text[0])) {
    out.align = text[0];
    text.remove_prefix(1);
  }
  if (!text.empty() && (text[0] == '+' || text[0] == '-' || text[0] == ' ')) {
    out.sign = text[0];
    text.remove_prefix(1);
  }
  out.alternate = take('#');
  out.zeros = take('0');
  out.width = number(text, whole);
  if (!text.empty() && (text[0] == ',' || text[0] == '_')) {
    out.group = text[0];
    text.remove_prefix(1);
  }
  if (take('.')) {
    out.has_precision = true;
    require(!text.empty() && text[0] >= '0' && text[0] <= '9', "the format ", quoted(whole),
            " has no number behind its point");
    out.precision = number(text, whole);
  }
  if (!text.empty()) {
    out.type = text[0];
    text.remove_prefix(1);
  }
  require(text.empty(), "the format ", quoted(whole), " is none that Python knows");
  if (out.zeros && !out.align) out.fill = "0", out.align = '=';
  return out;
}

size_t shown_width(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// `sign` stands in front of what '=' puts between sign and digits.
std::string aligned(const Spec& spec, std::string_view sign, std::string body, char usual) {
  char align = spec.align ? spec.align : usual;
  size_t width = sign.size() + shown_width(body);
  size_t missing = spec.width > width ? spec.width - width : 0;
  auto fill = [&](size_t count) {
    std::string out;
    for (size_t i = 0; i < count; ++i) out += spec.fill;
    return out;
  };
  std::string whole = std::string(sign) + body;
  switch (align) {
    case '<': return whole + fill(missing);
    case '^': return fill(missing / 2) + whole + fill(missing - missing / 2);
    case '=': return std::string(sign) + fill(missing) + body;
    default: return fill(missing) + whole;
  }
}

std::string grouped(std::string digits, char mark, size_t every = 3) {
  if (!mark) return digits;
  size_t whole = std::min(digits.find_first_not_of("0123456789abcdefABCDEF"), digits.size());
  for (size_t at = whole; at > every; at -= every) digits.insert(at - every, 1, mark);
  return digits;
}

std::string_view sign_of(bool negative, const Spec& spec) {
  return negative ? "-" : spec.sign == '+' ? "+" : spec.sign == ' ' ? " " : "";
}

std::string printed_with(const char* format, size_t precision, double value) {
  std::string out(1500, '\0');
  int count = std::snprintf(out.data(), out.size(), format, static_cast<int>(precision), value);
  out.resize(static_cast<size_t>(std::max(count, 0)));
  return out;
}

std::string magnitude(double value, const Spec& spec) {
  if (!std::isfinite(value)) return text(std::isnan(value) ? "nan" : "inf", spec.type == '%' ? "%" : "");
  size_t precision = spec.has_precision ? spec.precision : 6;
  switch (spec.type) {
    case 0: {
      if (!spec.has_precision) return python_repr(value);
      std::string out = printed_with("%.*g", std::max<size_t>(precision, 1), value);
      return out.find_first_of(".e") == out.npos ? out + ".0" : out;
    }
    case 'e': return printed_with("%.*e", precision, value);
    case 'E': return printed_with("%.*E", precision, value);
    case 'f':
    case 'F': return printed_with("%.*f", precision, value);
    case 'g':
    case 'n': return printed_with(spec.alternate ? "%#.*g" : "%.*g", precision, value);
    case 'G': return printed_with(spec.alternate ? "%#.*G" : "%.*G", precision, value);
    case '%': return printed_with("%.*f", precision, value * 100) + "%";
    default: fail("a float cannot be written as '", spec.type, "'");
  }
}

std::string in_base(uint64_t value, unsigned base, bool upper) {
  std::string out;
  do {
    unsigned digit = static_cast<unsigned>(value % base);
    out.insert(out.begin(), static_cast<char>(digit < 10 ? '0' + digit : (upper ? 'A' : 'a') + (digit - 10)));
    value /= base;
  } while (value);
  return out;
}

}  // namespace

std::string python_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[64];
  auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific).ptr;
  std::string_view all(text, static_cast<size_t>(end - text));
  size_t e = all.find('e');
  int exponent = std::atoi(std::string(all.substr(e + 1)).c_str());
  std::string digits;
  for (char c : all.substr(0, e))
    if (c >= '0' && c <= '9') digits += c;
  std::string sign = all[0] == '-' ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    std::string out = sign + digits.substr(0, 1) + (digits.size() > 1 ? "." + digits.substr(1) : "");
    std::string power = std::to_string(std::abs(exponent));
    return out + (exponent < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" + power : power);
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  return sign + digits.substr(0, whole) + "." + (digits.size() > whole ? digits.substr(whole) : "0");
}

std::string python_format(double value, std::string_view text) {
  Spec spec = parse_spec(text);
  bool negative = std::signbit(value) && !std::isnan(value);
  return aligned(spec, sign_of(negative, spec), grouped(magnitude(std::abs(value), spec), spec.group), '>');
}

std::string python_format(int64_t value, std::string_view text) {
  Spec spec = parse_spec(text);
  if (std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos && spec.type)
    return python_format(static_cast<double>(value), text);
  require(!spec.has_precision, "an integer is not written with a precision, as the format ", quoted(text), " asks");
  uint64_t size = value < 0 ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  std::string body;
  switch (spec.type) {
    case 0:
    case 'd':
    case 'n': body = grouped(std::to_string(size), spec.group); break;
    case 'b': body = (spec.alternate ? "0b" : "") + grouped(in_base(size, 2, false), spec.group, 4); break;
    case 'o': body = (spec.alternate ? "0o" : "") + grouped(in_base(size, 8, false), spec.group, 4); break;
    case 'x': body = (spec.alternate ? "0x" : "") + grouped(in_base(size, 16, false), spec.group, 4); break;
    case 'X': body = (spec.alternate ? "0X" : "") + grouped(in_base(size, 16, true), spec.group, 4); break;
    default: fail("an integer cannot be written as '", spec.type, "'");
  }
  return aligned(spec, sign_of(value < 0, spec), std::move(body), '>');
}

std::string python_format(bool value, std::string_view text) {
  if (text.empty()) return value ? "True" : "False";
  return python_format(static_cast<int64_t>(value), text);
}

std::string python_format(std::string_view value, std::string_view text) {
  Spec spec = parse_spec(text);
  require((!spec.type || spec.type == 's') && spec.sign == '-' && !spec.group && spec.align != '=',
          "a string cannot be written as the format ", quoted(text), " asks");
  size_t end = 0;
  for (size_t count = 0; end < value.size() && (!spec.has_precision || count < spec.precision); ++count)
    end += length_of_character(value.substr(end));
  return aligned(spec, "", std::string(value.substr(0, end)), '<');
}

std::vector<FormatPiece> parse_format(std::string_view format) {
  std::vector<FormatPiece> out(1);
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    char c = format[i];
    if (c != '{' && c != '}') {
      out.back().text += c;
      continue;
    }
    if (i + 1 < format.size() && format[i + 1] == c) {
      out.back().text += c;
      ++i;
      continue;
    }
    size_t end = format.find('}', i);
    require(c == '{' && end != format.npos, "the format ", quoted(format, 200), " has a single brace");
    std::string_view field = format.substr(i + 1, end - i - 1);
    require(field.find('{') == field.npos, "the format ", quoted(format, 200),
            " has a field within a field, which is not supported");
    FormatPiece& piece = out.back();
    piece.has_field = true;
    if (size_t colon = field.find(':'); colon != field.npos) {
      piece.spec = field.substr(colon + 1);
      field = field.substr(0, colon);
    }
    if (size_t mark = field.find('!'); mark != field.npos) {
      std::string_view how = field.substr(mark + 1);
      require(how == "r" || how == "s" || how == "a", "the format ", quoted(format, 200), " has an unknown conversion");
      piece.as_repr = how != "s";
      field = field.substr(0, mark);
    }
    require(field.find_first_of(".[") == field.npos, "the format ", quoted(format, 200),
            " asks for a part of an argument, which is not supported");
    piece.name = field.empty() ? std::to_string(next++) : std::string(field);
    out.emplace_back();
    i = end;
  }
  return out;
}

std::string escaped_braces(std::string_view text) {
  std::string out;
  for (char c : text) {
    out += c;
    if (c == '{' || c == '}') out += c;
  }
  return out;
}

}  // namespace tenon

// Python's str.format, as far as programs print with it: fields by number or by name, conversions, and the
// mini-language of numbers and strings.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// A piece of a format string: text, and then a field unless it is the last.
struct FormatPiece {
  std::string text;
  bool has_field = false;
  std::string name;  // of an argument, or its number; numbered ones are numbered here where the text leaves them out
  bool as_repr = false;
  std::string spec;
};

/// The pieces of a format string. Attributes, elements and fields within fields are refused.
std::vector<FormatPiece> parse_format(std::string_view format);
/// The text back with its braces doubled: what prints as itself.
std::string escaped_braces(std::string_view text);

/// format(value, spec) of Python. A spec that the type does not take is an Error.
std::string python_format(double value, std::string_view spec);
std::string python_format(int64_t value, std::string_view spec);
std::string python_format(bool value, std::string_view spec);
std::string python_format(std::string_view value, std::string_view spec);
/// repr of a float: the fewest digits that give it back.
std::string python_repr(double value);

}  // namespace tenon

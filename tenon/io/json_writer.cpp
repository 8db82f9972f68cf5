#include <cmath>
#include <utility>

#include "tenon/io/json.h"

namespace tenon {

namespace {

// The code point at the front of `s`, which shrinks by it; -1 where `s` is not UTF-8.
int32_t take_code_point(std::string_view& s) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  unsigned first = byte(0);
  size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
  if (length == 0 || length > s.size()) return -1;
  unsigned point = length == 1 ? first : first & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) >> 6) != 2) return -1;
    point = point << 6 | (byte(i) & 0x3F);
  }
  bool overlong = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
  if (overlong || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return -1;
  s.remove_prefix(length);
  return static_cast<int32_t>(point);
}

void append_unit(std::string& out, uint32_t unit) {
  const char* hex = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += hex[unit >> shift & 15];
}

}  // namespace

void append_json_string(std::string& out, std::string_view value) {
  out += '"';
  for (std::string_view rest = value; !rest.empty();) {
    int32_t signed_point = take_code_point(rest);
    if (signed_point < 0) fail("cannot write ", quoted(value), " as JSON: it is not UTF-8");
    auto point = static_cast<uint32_t>(signed_point);
    switch (point) {
      case '"': out += "\\\""; continue;
      case '\\': out += "\\\\"; continue;
      case '\n': out += "\\n"; continue;
      case '\r': out += "\\r"; continue;
      case '\t': out += "\\t"; continue;
      case '\b': out += "\\b"; continue;
      case '\f': out += "\\f"; continue;
      default: break;
    }
    if (point >= ' ' && point <= '~') {
      out += static_cast<char>(point);
    } else if (point < 0x10000) {
      append_unit(out, point);
    } else {
      append_unit(out, 0xD800 + ((point - 0x10000) >> 10));
      append_unit(out, 0xDC00 + (point & 0x3FF));
    }
  }
  out += '"';
}

void JsonWriter::before_value() {
  if (open_.empty()) {
    expect(out_.empty(), "a second JSON value at the top");
    return;
  }
  switch (open_.back()) {
    case Place::array_start: open_.back() = Place::array; return;
    case Place::array: out_ += ", "; return;
    case Place::after_key: open_.back() = Place::object; return;
    case Place::object_start:
    case Place::object: expect(false, "a JSON value without a key in an object");
  }
}

void JsonWriter::key(std::string_view key) {
  expect(!open_.empty() && (open_.back() == Place::object_start || open_.back() == Place::object),
         "a JSON key outside an object");
  if (open_.back() == Place::object) out_ += ", ";
  append_json_string(out_, key);
  out_ += ": ";
  open_.back() = Place::after_key;
}

void JsonWriter::end(Place start, Place later, char close) {
  expect(!open_.empty() && (open_.back() == start || open_.back() == later), "a JSON ", close, " out of place");
  open_.pop_back();
  out_ += close;
}

void JsonWriter::begin_object() {
  before_value();
  out_ += '{';
  open_.push_back(Place::object_start);
}
void JsonWriter::end_object() { end(Place::object_start, Place::object, '}'); }
void JsonWriter::begin_array() {
  before_value();
  out_ += '[';
  open_.push_back(Place::array_start);
}
void JsonWriter::end_array() { end(Place::array_start, Place::array, ']'); }
void JsonWriter::null() {
  before_value();
  out_ += "null";
}
void JsonWriter::boolean(bool value) {
  before_value();
  append_text(out_, value);
}
void JsonWriter::integer(int64_t value) {
  before_value();
  append_text(out_, value);
}
void JsonWriter::real(double value) {
  require(std::isfinite(value), "cannot write the number ", value, " as JSON: it is not finite");
  before_value();
  append_text(out_, value);
}
void JsonWriter::string(std::string_view value) {
  before_value();
  append_json_string(out_, value);
}

std::string JsonWriter::take() {
  expect(open_.empty() && !out_.empty(), "unfinished JSON");
  return std::exchange(out_, {});
}

}  // namespace tenon

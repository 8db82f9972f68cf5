#include "tenon/train/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tenon/base/error.h"
#include "tenon/base/text.h"

namespace tenon::train {
namespace {

std::string trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return std::string(text);
}

/// At commas, those within brackets aside.
std::vector<std::string> parts_of(std::string_view text) {
  std::vector<std::string> out(1);
  int depth = 0;
  for (char c : text) {
    depth += (c == '(' || c == '[') - (c == ')' || c == ']');
    if (c == ',' && depth == 0) out.emplace_back();
    else out.back() += c;
  }
  for (std::string& part : out) part = trimmed(part);
  return out;
}

bool parse_number(std::string_view text, double& value) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

}  // namespace

Settings::Settings(std::string what, std::string_view text) : what_(std::move(what)), text_(text) {
  std::vector<std::string> parts = parts_of(text);
  name_ = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    size_t equals = parts[i].find('=');
    require(equals != std::string::npos && equals > 0, what_, ": expected NAME,KEY=VALUE,..., got ", quoted(text_));
    std::string key = trimmed(parts[i].substr(0, equals));
    require(!has(key), what_, ": ", quoted(key), " is given twice in ", quoted(text_));
    arguments_.push_back({key, trimmed(parts[i].substr(equals + 1))});
  }
}

Settings::Argument* Settings::find(const std::string& key) {
  known_.push_back(key);
  for (Argument& argument : arguments_)
    if (argument.key == key) {
      argument.read = true;
      return &argument;
    }
  return nullptr;
}

bool Settings::has(const std::string& key) const {
  return std::any_of(arguments_.begin(), arguments_.end(), [&](const Argument& a) { return a.key == key; });
}

double Settings::number(const std::string& key, double otherwise) {
  Argument* argument = find(key);
  double value = otherwise;
  if (argument)
    require(parse_number(argument->value, value), what_, " ", name_, ": ", key, ": expected a number, got ",
            quoted(argument->value));
  return value;
}

double Settings::positive(const std::string& key, double otherwise) {
  double value = number(key, otherwise);
  require(value >= 0, what_, " ", name_, ": ", key, ": expected 0 or more, got ", value);
  return value;
}

int64_t Settings::count(const std::string& key, int64_t otherwise) {
  double value = number(key, static_cast<double>(otherwise));
  require(value == std::floor(value) && std::abs(value) < 1e15, what_, " ", name_, ": ", key,
          ": expected a whole number, got ", value);
  return static_cast<int64_t>(value);
}

bool Settings::flag(const std::string& key, bool otherwise) {
  Argument* argument = find(key);
  if (!argument) return otherwise;
  for (std::string_view yes : {"True", "true", "1"})
    if (argument->value == yes) return true;
  for (std::string_view no : {"False", "false", "0"})
    if (argument->value == no) return false;
  fail(what_, " ", name_, ": ", key, ": expected True or False, got ", quoted(argument->value));
}

std::vector<double> Settings::numbers(const std::string& key, std::vector<double> otherwise) {
  Argument* argument = find(key);
  if (!argument) return otherwise;
  std::string_view value = argument->value;
  bool bracketed = value.size() >= 2 &&
                   ((value.front() == '(' && value.back() == ')') || (value.front() == '[' && value.back() == ']'));
  require(bracketed, what_, " ", name_, ": ", key, ": expected (NUMBER,NUMBER,...), got ", quoted(value));
  std::vector<double> out;
  for (const std::string& part : parts_of(value.substr(1, value.size() - 2))) {
    out.emplace_back();
    require(parse_number(part, out.back()), what_, " ", name_, ": ", key, ": expected numbers, got ", quoted(value));
  }
  return out;
}

void Settings::done() const {
  for (const Argument& argument : arguments_)
    require(argument.read, what_, " ", name_, ": there is no argument ", quoted(argument.key), "; ",
            known_.empty() ? "it takes none" : "it takes " + join(known_, ", "));
}

void Settings::unknown_name(std::string_view expected) const {
  fail(what_, ": expected ", expected, ", got ", quoted(name_));
}

}  // namespace tenon::train

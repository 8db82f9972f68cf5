#include <tenon/value.h>

#include <algorithm>

#include "tenon/api/access.h"

namespace tenon::v0 {

using detail::Access;
using detail::fail_call;

std::string describe(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none: return "None";
    case Value::Kind::tensor: return tenon::text(Access::unwrap(Access::tensor(value)).meta());
    case Value::Kind::truth: return Access::integer(value) ? "True" : "False";
    case Value::Kind::integer: return tenon::text("the integer ", Access::integer(value));
    case Value::Kind::real: return tenon::text("the number ", Access::real(value));
    case Value::Kind::string: return tenon::text("the string ", tenon::quoted(Access::text(value), 60));
    case Value::Kind::list: return tenon::text("a list of ", value.size());
    case Value::Kind::tuple: return tenon::text("a tuple of ", value.size());
    case Value::Kind::dictionary: return tenon::text("a dictionary with the keys ", tenon::join(value.keys(), ", "));
  }
  tenon::unreachable();
}

Value Value::list(std::vector<Value> items) {
  Value out;
  out.kind_ = Kind::list;
  out.items_ = std::move(items);
  return out;
}

Value Value::tuple(std::vector<Value> items) {
  Value out = list(std::move(items));
  out.kind_ = Kind::tuple;
  return out;
}

Value Value::dictionary(std::vector<std::pair<std::string, Value>> entries) {
  Value out;
  out.kind_ = Kind::dictionary;
  for (auto& [key, value] : entries) {
    if (out.contains(key)) fail_call("a dictionary has the key ", tenon::quoted(key, 60), " twice");
    out.keys_.push_back(std::move(key));
    out.items_.push_back(std::move(value));
  }
  return out;
}

const char* Value::present(const char* text) {
  if (!text) fail_call("a string was expected, got a null pointer; None is nullptr or std::nullopt");
  return text;
}

size_t Value::size() const {
  if (kind_ < Kind::list) fail_call("a list, a tuple or a dictionary has a size, got ", describe(*this));
  return items_.size();
}

const std::vector<std::string>& Value::keys() const {
  dictionary_at("value");
  return keys_;
}

const Value& Value::operator[](size_t index) const {
  if (!is_sequence()) fail_call("[", index, "]: expected a list or a tuple, got ", describe(*this));
  if (index >= items_.size()) fail_call("[", index, "]: ", describe(*this), " has no such entry");
  return items_[index];
}

const Value& Value::operator[](const std::string& key) const {
  if (kind_ != Kind::dictionary)
    fail_call("[", tenon::quoted(key, 60), "]: expected a dictionary, got ", describe(*this));
  auto found = std::find(keys_.begin(), keys_.end(), key);
  if (found == keys_.end())
    fail_call("there is no key ", tenon::quoted(key, 60), "; the keys are ", tenon::join(keys_, ", "));
  return items_[static_cast<size_t>(found - keys_.begin())];
}

bool Value::contains(const std::string& key) const { return std::find(keys_.begin(), keys_.end(), key) != keys_.end(); }

Tensor Value::get(Wanted<Tensor>, const std::string& path) const {
  if (kind_ != Kind::tensor && kind_ != Kind::none) fail_call(path, ": expected a tensor, got ", describe(*this));
  return tensor_;
}

std::string Value::get(Wanted<std::string>, const std::string& path) const {
  if (kind_ != Kind::string) fail_call(path, ": expected a string, got ", describe(*this));
  return text_;
}

bool Value::boolean_at(const std::string& path) const {
  if (kind_ != Kind::truth) fail_call(path, ": expected a boolean, got ", describe(*this));
  return integer_ != 0;
}

int64_t Value::integer_at(const std::string& path) const {
  if (kind_ != Kind::integer && kind_ != Kind::truth) fail_call(path, ": expected an integer, got ", describe(*this));
  return integer_;
}

double Value::real_at(const std::string& path) const {
  if (kind_ == Kind::integer || kind_ == Kind::truth) return static_cast<double>(integer_);
  if (kind_ != Kind::real) fail_call(path, ": expected a number, got ", describe(*this));
  return real_;
}

size_t Value::sequence_at(const std::string& path) const {
  if (!is_sequence()) fail_call(path, ": expected a list or a tuple, got ", describe(*this));
  return items_.size();
}

void Value::sequence_at(const std::string& path, size_t size, bool or_dictionary) const {
  bool fits = is_sequence() || (or_dictionary && kind_ == Kind::dictionary);
  if (!fits || items_.size() != size) fail_call(path, ": expected ", size, " values, got ", describe(*this));
}

void Value::dictionary_at(const std::string& path) const {
  if (kind_ != Kind::dictionary) fail_call(path, ": expected a dictionary, got ", describe(*this));
}

}  // namespace tenon::v0

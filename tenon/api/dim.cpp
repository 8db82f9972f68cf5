#include <tenon/export.h>

#include <cctype>

#include "tenon/api/access.h"

namespace tenon::v0 {

using detail::fail_call;

namespace {

void require_bounds(const char* what, Bounds bounds) {
  if (bounds.min < 0 || bounds.max < bounds.min)
    fail_call(what, ": expected bounds 0 <= min <= max, got min ", bounds.min, " and max ", bounds.max);
}

}  // namespace

Dim::Dim(std::string name, Bounds bounds) : kind_(Kind::named), name_(std::move(name)), bounds_(bounds) {
  bool identifier = !name_.empty() && !std::isdigit(static_cast<unsigned char>(name_[0]));
  for (char c : name_) identifier = identifier && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
  if (!identifier)
    fail_call("Dim: expected a name of letters, digits and _, no digit first, got ", tenon::quoted(name_, 100));
  require_bounds("Dim", bounds);
}

Dim Dim::automatic(Bounds bounds) {
  require_bounds("Dim::automatic", bounds);
  return Dim(Kind::automatic, bounds);
}
Dim Dim::dynamic(Bounds bounds) {
  require_bounds("Dim::dynamic", bounds);
  return Dim(Kind::dynamic, bounds);
}
Dim Dim::fixed(std::optional<int64_t> size) {
  if (size && *size < 0) fail_call("Dim::fixed: expected a size of at least 0, got ", *size);
  Dim out(Kind::fixed, {});
  out.size_ = size;
  return out;
}

Dim Dim::operator*(int64_t factor) const {
  if (kind_ != Kind::named) fail_call("Dim: only a named dimension has multiples, as 2 * Dim(\"n\")");
  if (factor <= 0) fail_call("Dim: expected a positive number to multiply ", name_, " with, got ", factor);
  Dim out = *this;
  if (__builtin_mul_overflow(factor_, factor, &out.factor_) || __builtin_mul_overflow(offset_, factor, &out.offset_))
    fail_call("Dim: a multiple of ", name_, " is more than 64 bits hold");
  return out;
}
Dim Dim::operator+(int64_t offset) const {
  if (kind_ != Kind::named) fail_call("Dim: only a named dimension can be added to, as Dim(\"n\") + 1");
  Dim out = *this;
  int64_t least = 0;
  if (__builtin_add_overflow(offset_, offset, &out.offset_) || __builtin_mul_overflow(factor_, bounds_.min, &least) ||
      __builtin_add_overflow(least, out.offset_, &least))
    fail_call("Dim: a sum with ", name_, " is more than 64 bits hold");
  if (least < 0)
    fail_call("Dim: ", factor_, "*", name_, " + ", out.offset_, " would be ", least, " for ", name_, " = ", bounds_.min,
              "; sizes are not negative: give ", name_, " a larger min");
  return out;
}

}  // namespace tenon::v0

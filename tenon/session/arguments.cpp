#include "tenon/session/arguments.h"

#include <optional>

#include "tenon/rules/call.h"

namespace tenon {
namespace {

// The argument a caller gave for a leaf that was specialized to a constant.
void require_constant(const CallArg& given, const CallArg& stored, const std::string& name) {
  if (given.is_none() || given == stored) return;
  auto number = [](const CallArg& a) -> std::optional<double> {
    if (auto* b = a.get<bool>()) return *b;
    if (auto* i = a.get<SymInt>(); i && i->is_int()) return static_cast<double>(i->as_int());
    if (auto* d = a.get<double>()) return *d;
    if (auto* t = a.get<Tensor>(); t && *t && t->numel() == SymInt(1)) return scalar_value(*t);
    return std::nullopt;
  };
  auto a = number(given), b = number(stored);
  require(a && b && *a == *b, "input ", name, ": the program was exported for the constant ", describe(stored),
          " and takes no other value, got ", describe(given));
}

}  // namespace

void require_constants(const std::vector<std::string>& names, const std::vector<CallArg>& constants,
                       const std::vector<CallArg>& given) {
  for (size_t i = 0; i < constants.size(); ++i)
    if (!constants[i].is_none()) require_constant(given[i], constants[i], names[i]);
}

CallArg as_number(const CallArg& given, loop::Input::Type type, const std::string& name) {
  if (auto* t = given.get<Tensor>(); t && *t && t->numel() == SymInt(1)) {
    if (type == loop::Input::Type::floating) return scalar_value(*t);
    require(!is_floating(t->dtype()), "input ", name, ": expected an integer, got ", t->meta());
    if (type == loop::Input::Type::boolean) return scalar_integer(*t) != 0;
    return scalar_integer(*t);
  }
  require(given.is_number(), "input ", name, ": expected a number, got ", describe(given));
  return given;
}

}  // namespace tenon

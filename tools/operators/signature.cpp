#include "tools/operators/signature.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "tenon/rules/registry.h"

namespace tenon {
namespace {

// Words of C++ that schemas use as names.
std::string cpp_name(const std::string& name) {
  static const std::set<std::string> words = {
      "bool", "char",  "class",    "const", "default",   "double", "else",     "false",    "float",
      "for",  "if",    "int",      "long",  "namespace", "new",    "operator", "or",       "and",
      "not",  "xor",   "return",   "short", "signed",    "static", "switch",   "template", "this",
      "true", "union", "unsigned", "using", "void",      "while"};
  return words.contains(name) ? name + "_" : name;
}

// What the library decides for its users: where tensors lie and how memory is laid out.
bool left_at_default(const SchemaArg& arg) {
  switch (arg.type.kind) {
    case TypeKind::layout:
    case TypeKind::memory_format:
    case TypeKind::device:
    case TypeKind::generator:
    case TypeKind::storage:
    case TypeKind::stream: return true;
    case TypeKind::boolean: return arg.name == "pin_memory" || arg.name == "non_blocking";
    case TypeKind::tensor:
    case TypeKind::scalar:
    case TypeKind::integer:
    case TypeKind::floating:
    case TypeKind::string:
    case TypeKind::dtype:
    case TypeKind::other: return false;
  }
  unreachable();
}

std::optional<std::string> cpp_type(const Type& type) {
  auto one = [&](const char* plain, const char* list) -> std::optional<std::string> {
    if (type.list) return list ? std::optional<std::string>(list) : std::nullopt;
    return type.optional ? text("std::optional<", plain, ">") : std::string(plain);
  };
  switch (type.kind) {
    case TypeKind::tensor: return type.list ? "TensorList" : "const Tensor&";
    case TypeKind::scalar: return type.list ? std::nullopt : std::optional(type.optional ? "OptionalScalar" : "Scalar");
    case TypeKind::integer: return one(starts_with(type.text, "SymInt") ? "Size" : "std::int64_t", "IntList");
    case TypeKind::floating: return one("double", "FloatList");
    case TypeKind::boolean: return one("Flag", nullptr);
    case TypeKind::string: return one("std::string_view", nullptr);
    case TypeKind::dtype: return one("DType", nullptr);
    case TypeKind::layout:
    case TypeKind::memory_format:
    case TypeKind::device:
    case TypeKind::generator:
    case TypeKind::storage:
    case TypeKind::stream:
    case TypeKind::other: return std::nullopt;
  }
  unreachable();
}

std::string real(double value) {
  if (std::isinf(value)) return value < 0 ? "-__builtin_inf()" : "__builtin_inf()";
  std::string out = text(value);
  return out.find_first_of(".e") == out.npos ? out + ".0" : out;
}

std::optional<std::string> cpp_default(const SchemaArg& arg) {
  const CallArg& value = arg.default_value;
  if (value.is_none()) {
    bool plain = arg.type.kind == TypeKind::tensor || arg.type.list;
    return plain ? "{}" : "std::nullopt";
  }
  if (auto* b = value.get<bool>()) return *b ? "true" : "false";
  if (auto* i = value.get<SymInt>()) return i->is_int() ? std::optional(text(i->as_int())) : std::nullopt;
  if (auto* d = value.get<double>()) return real(*d);
  if (auto* s = value.get<std::string>()) return text('"', *s, '"');
  if (auto* dtype = value.get<DType>()) return text("DType::", *dtype);
  if (auto* list = value.get<Sizes>()) {
    std::vector<std::string> items;
    for (SymInt item : *list) items.push_back(text(item));
    return text("{", join(items, ", "), "}");
  }
  return std::nullopt;
}

bool set_result(Signature& out) {
  const std::vector<SchemaArg>& returns = out.op->schema.returns;
  if (returns.empty()) {
    out.result = "void", out.getter = "run";
    return !out.op->traits.asserts;
  }
  if (returns.size() > 1) {
    for (const SchemaArg& each : returns)
      if (each.type.kind != TypeKind::tensor || each.type.list) return false;
    out.result = "std::tuple<";
    for (size_t i = 0; i < returns.size(); ++i) out.result += i ? ", Tensor" : "Tensor";
    out.result += ">";
    out.getter = text("tensors<", returns.size(), ">");
    return true;
  }
  const Type& type = returns[0].type;
  auto is = [&](const char* result, const char* getter) {
    out.result = result, out.getter = getter;
    return true;
  };
  if (type.kind == TypeKind::tensor)
    return type.list ? is("std::vector<Tensor>", "list") : is("Tensor", out.writes ? "written" : "tensor");
  if (type.list || type.optional) return false;
  if (type.kind == TypeKind::boolean) return is("bool", "truth");
  if (type.kind == TypeKind::integer) return is(starts_with(type.text, "SymInt") ? "Size" : "std::int64_t", "integer");
  if (type.kind == TypeKind::floating) return is("double", "real");
  if (type.kind == TypeKind::scalar) return is("Scalar", "scalar");
  return false;
}

std::optional<Signature> signature_of(const Op& op) {
  const Schema& schema = op.schema;
  bool kept_private = schema.space() != "aten" || schema.base().front() == '_' ||
                      schema.base().find("backward") != std::string_view::npos || ends_with(schema.base(), "_copy") ||
                      ends_with(schema.base(), "_copy_");
  if (kept_private || op.traits.unknown || op.traits.measures != Measure::none || op.kind == OpKind::symbolic ||
      op.traits.control != Control::none)
    return std::nullopt;
  Signature out{.op = &op, .name = cpp_name(std::string(schema.base()))};
  for (const SchemaArg& arg : schema.args) {
    if (left_at_default(arg)) {
      if (!arg.has_default) return std::nullopt;
      out.parameters.push_back({.shown = false});
      continue;
    }
    if (arg.writes && (&arg != schema.args.data() || arg.type.list)) return std::nullopt;  // an out form
    auto type = cpp_type(arg.type);
    std::optional<std::string> default_value = arg.has_default ? cpp_default(arg) : std::string();
    if (!type || !default_value) return std::nullopt;
    out.parameters.push_back({cpp_name(arg.name), *type, *default_value});
  }
  out.method = !schema.args.empty() && schema.args[0].name == "self" && out.parameters[0].type == "const Tensor&" &&
               !schema.args[0].type.optional;
  out.writes = !schema.args.empty() && schema.args[0].writes;
  if (!set_result(out)) return std::nullopt;
  // A parameter with a default before one without: C++ has no such functions.
  bool required = false;
  for (size_t i = out.parameters.size(); i-- > 0;) {
    Parameter& p = out.parameters[i];
    if (!p.shown) continue;
    if (required) p.default_value.clear();
    required = required || p.default_value.empty();
  }
  return out;
}

// Takes away those defaults of `later` by which a call could mean either of the two.
void tell_apart(const Signature& earlier, Signature& later) {
  std::vector<const Parameter*> theirs = earlier.shown();
  std::vector<Parameter*> ours;
  for (Parameter& p : later.parameters)
    if (p.shown) ours.push_back(&p);
  size_t same = 0;
  while (same < ours.size() && same < theirs.size() && ours[same]->type == theirs[same]->type) ++same;
  for (size_t i = 0; i < ours.size() && i <= same; ++i) ours[i]->default_value.clear();
}

// An integer alone and a list of them: the list does not take one for all.
void tell_lists_apart(Signature& a, Signature& b) {
  for (size_t i = 0; i < std::min(a.parameters.size(), b.parameters.size()); ++i) {
    std::string &x = a.parameters[i].type, &y = b.parameters[i].type;
    if (x == "Size" && y == "IntList") y = "IntItems";
    if (y == "Size" && x == "IntList") x = "IntItems";
  }
}

// The types of a signature, those that the same argument converts to equally well under one name.
std::string types_of(const Signature& s) {
  std::string out;
  for (const Parameter* p : s.shown()) {
    if (p->type == "std::optional<std::int64_t>" || p->type == "std::optional<Size>") out += "IntList, ";
    else if (p->type == "OptionalScalar") out += "Scalar, ";
    else out += p->type + ", ";
  }
  return out;
}

// The plain overload first: its defaults are the ones that stay.
int rank(const Signature& s) {
  std::string_view overload = s.op->schema.overload();
  return overload == "default" ? 0 : overload == "Tensor" ? 1 : 2;
}

}  // namespace

std::vector<const Parameter*> Signature::shown() const {
  std::vector<const Parameter*> out;
  for (const Parameter& p : parameters)
    if (p.shown) out.push_back(&p);
  return out;
}

std::vector<Signature> signatures() {
  std::map<std::string, std::vector<Signature>> by_name;
  std::set<const Op*> seen;
  auto add = [&](const Op* op) {
    if (!op || !seen.insert(op).second) return;
    if (auto signature = signature_of(*op)) by_name[signature->name].push_back(std::move(*signature));
  };
  for (const Op* op : registry().all()) {
    add(op);
    const Schema& s = op->schema;
    bool has_in_place_form = !s.args.empty() && s.args[0].name == "self" && !s.writes() && s.base().back() != '_' &&
                             s.returns.size() == 1 && s.returns[0].type.kind == TypeKind::tensor &&
                             !s.returns[0].type.list && op->kind != OpKind::view && op->kind != OpKind::reduction &&
                             s.args[0].alias.empty() && !op->traits.may_alias;
    if (has_in_place_form)
      add(registry().find(text(s.space(), "::", s.base(), "_", s.overload() == "default" ? "" : ".",
                               s.overload() == "default" ? "" : s.overload())));
  }
  std::vector<Signature> out;
  for (auto& [name, overloads] : by_name) {
    std::stable_sort(overloads.begin(), overloads.end(),
                     [](const Signature& a, const Signature& b) { return rank(a) < rank(b); });
    std::set<std::string> taken;
    std::vector<Signature> kept;
    for (Signature& s : overloads) {
      if (!taken.insert(types_of(s)).second) continue;
      for (Signature& earlier : kept) {
        tell_apart(earlier, s);
        tell_lists_apart(earlier, s);
      }
      kept.push_back(std::move(s));
    }
    for (Signature& s : kept) out.push_back(std::move(s));
  }
  return out;
}

}  // namespace tenon

// The gate before every call of an operator: what a schema wants is there.
#include "tenon/graph/op.h"

namespace tenon {
namespace {

bool may_be_absent(const Type& type) {
  switch (type.kind) {
    case TypeKind::tensor:
    case TypeKind::scalar:
    case TypeKind::integer:
    case TypeKind::floating:
    case TypeKind::boolean:
    case TypeKind::string:
    case TypeKind::dtype:
    case TypeKind::layout:
    case TypeKind::memory_format:
    case TypeKind::device: return type.optional;
    case TypeKind::generator:
    case TypeKind::storage:
    case TypeKind::stream:
    case TypeKind::other: return true;
  }
  unreachable();
}

// Of an argument: the expression that is no integer, or that only a run tells where the schema says int and rules ask
// for its number.
std::optional<SymInt> unfit_integer(const CallArg& arg, const Type& type) {
  bool constants = type.text.starts_with("int");
  auto unfit = [&](SymInt s) { return !s.is_int() && (constants || s.is_boolean_typed()); };
  if (auto* number = arg.get<SymInt>(); number && unfit(*number)) return *number;
  if (auto* list = arg.get<Sizes>())
    for (SymInt s : *list)
      if (unfit(s)) return s;
  return std::nullopt;
}

}  // namespace

void require_given(const Op& op, std::span<const CallArg> args) {
  const std::vector<SchemaArg>& slots = op.schema.args;
  for (size_t i = 0; i < slots.size() && i < args.size(); ++i) {
    const Type& type = slots[i].type;
    bool good = true;
    if (auto* t = args[i].get<Tensor>()) good = t->defined() || may_be_absent(type);
    else if (auto* list = args[i].get<std::vector<Tensor>>())
      for (const Tensor& t : *list) good = good && (t.defined() || type.optional_items);
    else if (args[i].is_none()) good = may_be_absent(type);
    if (!good) [[unlikely]]
      fail(op.name(), ": argument ", slots[i].name, ": expected ", type.text, ", got ",
           args[i].is<std::vector<Tensor>>() ? "a list with None in it" : "None");
    if (type.kind != TypeKind::integer) continue;
    if (std::optional<SymInt> e = unfit_integer(args[i], type)) [[unlikely]]
      fail(op.name(), ": argument ", slots[i].name, ": expected ", type.text,
           e->is_boolean_typed() ? "" : " that is known before the program runs", ", got ", *e);
  }
}

CallResults Dispatcher::call(const Op& op, CallArgs args) {
  require_given(op, args);
  return run(op, std::move(args));
}

CallResults dispatch(const Op& op, CallArgs args) {
  Dispatcher* top = top_dispatcher();
  expect(top != nullptr, "an operator was called before interp::install()");
  return top->call(op, std::move(args));
}

}  // namespace tenon

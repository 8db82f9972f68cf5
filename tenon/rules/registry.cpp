#include "tenon/rules/registry.h"

#include <algorithm>
#include <atomic>

#include "tenon/rules/infer.h"
#include "tenon/rules/registration.h"

namespace tenon {
namespace {

constexpr std::string_view predispatch = "torch._functorch.predispatch.";

std::string target_of(const Schema& schema, const OpDef* def) {
  if (def && def->kind == OpKind::symbolic) return schema.name;
  if (schema.space() == "functorch") return text(predispatch, schema.base());
  if (schema.space() == "higher_order")
    return text("torch.ops.higher_order.", schema.base());  // these have no overloads
  return text("torch.ops.", schema.space(), ".", schema.base(), ".", schema.overload());
}

// aten::add.Tensor from any spelling: torch.ops.aten.add.Tensor, aten.add.Tensor, aten::add.Tensor.
std::string canonical(std::string_view name) {
  if (starts_with(name, predispatch)) return text("functorch::", name.substr(predispatch.size()));
  if (starts_with(name, "torch.ops.")) name.remove_prefix(10);
  else if (name.find("::") != std::string_view::npos || starts_with(name, "_operator.") ||
           starts_with(name, "torch.") || starts_with(name, "math.") || starts_with(name, "builtins.")) {
    std::string out(name);
    if (ends_with(out, ".default")) out.resize(out.size() - 8);
    return out;
  }
  size_t dot = name.find('.');
  if (dot == std::string_view::npos) return std::string(name);
  std::string out = text(name.substr(0, dot), "::", name.substr(dot + 1));
  if (ends_with(out, ".default")) out.resize(out.size() - 8);
  return out;
}

}  // namespace

const Op* Registry::insert(OpDef def) const {
  defs_.push_back(def);
  const OpDef& kept = defs_.back();
  Op op;
  if (def.kind == OpKind::symbolic) {  // named like a Python function: "_operator.add(a, b)"
    std::string_view s = def.schema;
    size_t open = s.find('(');
    op.schema.name = std::string(s.substr(0, open));
    for (const std::string& part : split(s.substr(open + 1, s.find(')') - open - 1), ',')) {
      SchemaArg arg;
      arg.name = std::string(trim(part));
      arg.type = {.kind = TypeKind::scalar, .text = "Scalar"};
      if (!arg.name.empty()) op.schema.args.push_back(std::move(arg));
    }
    op.schema.returns.emplace_back();
  } else {
    op.schema = parse_schema(def.schema);
  }
  if (size_t wanted = def.scalar.operands()) {
    size_t operands = 0;
    for (const SchemaArg& arg : op.schema.args) operands += is_operand(arg);
    expect(operands == wanted, op.schema.name, ": its formula takes ", wanted, " operands, the schema has ", operands);
  }
  op.kind = def.kind;
  op.traits = def.traits;
  op.notation = def.notation;
  op.def = &kept;
  op.target = target_of(op.schema, &kept);
  ops_.push_back(std::move(op));
  const Op* made = &ops_.back();
  expect(by_name_.emplace(made->schema.name, made).second, made->schema.name, " is registered twice");
  if (def.kind == OpKind::symbolic || def.traits.measures != Measure::none) of_numbers_.push_back(made);
  if (def.kind != OpKind::symbolic) by_base_[text(made->schema.space(), "::", made->schema.base())].push_back(made);
  return made;
}

void Registry::add(Handle& handle, OpDef def) {
  std::lock_guard lock(mutex_);
  const Op* op = insert(def);
  std::atomic_ref<const Op*>(handle.op_).store(op, std::memory_order_release);  // Handle::op() of other threads
}
void Registry::add(OpDef def) {
  std::lock_guard lock(mutex_);
  insert(def);
}

void Registry::overload(const Handle& of, Handle& handle, const char* schema) {
  OpDef def = *of.op().def;
  def.schema = schema;
  def.traits.takes_numbers = false;
  const Op* op = insert(std::move(def));
  std::atomic_ref<const Op*>(handle.op_).store(op, std::memory_order_release);
}
void Registry::overload(const Handle& of, std::initializer_list<const char*> schemas) {
  Handle unnamed;
  for (const char* schema : schemas) overload(of, unnamed, schema);
}

void Registry::alias(const Handle& handle, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    Op op = handle.op();
    op.schema.name = text(op.schema.space(), "::", name);
    op.target = target_of(op.schema, op.def);
    ops_.push_back(std::move(op));
    const Op* made = &ops_.back();
    expect(by_name_.emplace(made->schema.name, made).second, made->schema.name, " is registered twice");
    by_base_[text(made->schema.space(), "::", made->schema.base())].push_back(made);
  }
}

void Registry::in_place(const Handle& functional, const char* schema) {
  Op op = functional.op();
  op.schema = parse_schema(schema);
  op.functional = &functional.op();
  if (op.kind == OpKind::view) op.kind = OpKind::general;
  op.target = target_of(op.schema, op.def);
  ops_.push_back(std::move(op));
  const Op* made = &ops_.back();
  expect(by_name_.emplace(made->schema.name, made).second, made->schema.name, " is registered twice");
}

const Op* Registry::find(std::string_view name) const {
  std::string key = canonical(name);
  std::lock_guard lock(mutex_);
  if (auto it = by_name_.find(key); it != by_name_.end()) return it->second;
  if (const Op* op = derive_in_place(key)) return op;
  return derive_out(key);
}

const Op& Registry::in_place_form(const Op& functional) const {
  const Schema& s = functional.schema;
  const Op* op = find(text(s.space(), "::", s.base(), "_.", s.overload()));
  expect(op != nullptr, functional.name(), " has no in-place form");
  return *op;
}

// add_.Tensor(Tensor(a!) self, ...) -> Tensor(a!): what add.Tensor computes, written to self.
const Op* Registry::derive_in_place(const std::string& name) const {
  size_t dot = name.find('.', name.find("::") == std::string::npos ? 0 : name.find("::"));
  std::string base = name.substr(0, dot), overload = dot == std::string::npos ? "" : name.substr(dot);
  if (base.empty() || base.back() != '_' || ends_with(base, "__")) return nullptr;
  auto twin = by_name_.find(base.substr(0, base.size() - 1) + overload);
  if (twin == by_name_.end()) return nullptr;
  const Op& from = *twin->second;
  if (from.schema.args.empty() || from.schema.returns.size() != 1 ||
      from.schema.args[0].type.kind != TypeKind::tensor || from.schema.args[0].type.list)
    return nullptr;
  Op op = from;
  op.schema.name = name;
  op.schema.args[0].name = "self";  // whatever the functional form calls it
  op.schema.args[0].alias = op.schema.returns[0].alias = "a";
  op.schema.args[0].writes = op.schema.returns[0].writes = true;
  op.functional = &from;
  op.kind = from.kind == OpKind::view ? OpKind::general : from.kind;
  op.target = target_of(op.schema, op.def);
  ops_.push_back(std::move(op));
  return by_name_[name] = &ops_.back();
}

// add.out(..., *, Tensor(a!) out) -> Tensor(a!): the overload of the same base that has its other arguments.
const Op* Registry::derive_out(const std::string& name) const {
  size_t space = name.find("::");
  if (space == std::string::npos) return nullptr;
  size_t dot = name.find('.', space);
  if (dot == std::string::npos) return nullptr;
  std::string base = name.substr(0, dot), overload = name.substr(dot + 1);
  if (overload != "out" && !ends_with(overload, "_out")) return nullptr;
  auto overloads = by_base_.find(base);
  if (overloads == by_base_.end()) return nullptr;
  std::string stem = overload == "out" ? "" : overload.substr(0, overload.size() - 4);
  const Op* twin = nullptr;
  bool ambiguous = false;  // mean.out is of mean.dim, max.out of max.other: these are registered with their family
  for (const Op* candidate : overloads->second) {
    std::string_view o = candidate->schema.overload();
    ambiguous |= stem.empty() && (o == "dim" || o == "other");
    if (stem.empty() ? (o == "default" || (o == "Tensor" && !twin))
                     : (o == stem || (!twin && ends_with(o, "_" + stem))))
      twin = candidate;
  }
  if (!twin || ambiguous || twin->schema.writes() || twin->schema.returns.size() != 1)
    return nullptr;  // of several results each has a name of its own
  if (twin->schema.find("layout") >= 0 || base.find("_backward") != std::string::npos)
    return nullptr;  // other arguments than the twin's
  for (const SchemaArg& r : twin->schema.returns)
    if (r.type.kind != TypeKind::tensor || r.type.list) return nullptr;
  Op op = *twin;
  op.schema.name = name;
  size_t results = op.schema.returns.size();
  for (size_t i = 0; i < results; ++i) {
    SchemaArg out;
    out.name = results == 1 ? "out" : text("out", i);
    out.type = {.kind = TypeKind::tensor, .text = "Tensor"};
    out.keyword_only = true;
    out.writes = true;
    out.alias = std::string(1, static_cast<char>('a' + i));
    op.schema.args.push_back(out);
    op.schema.returns[i].alias = out.alias;
    op.schema.returns[i].writes = true;
  }
  op.functional = twin;
  op.target = target_of(op.schema, op.def);
  ops_.push_back(std::move(op));
  return by_name_[name] = &ops_.back();
}

const Op* Registry::computing(sym::Expr e) const {
  const Op* found = nullptr;
  for (const Op* op : of_numbers_)
    if (op->notation.computes(e) && (!found || op->notation.last)) found = op;  // sqrt rather than pow
  return found;
}

const Op* Registry::measuring(Measure what) const {
  for (const Op* op : of_numbers_)
    if (op->traits.measures == what) return op;
  return nullptr;
}

const Op& Registry::for_numbers(const Op& op, std::span<const CallArg> args) const {
  auto stands_in = [&](size_t i) {
    return op.schema.args[i].type.kind == TypeKind::tensor && !op.schema.args[i].type.list && args[i].is_number();
  };
  bool any = false;
  for (size_t i = 0; i < args.size(); ++i) any = any || stands_in(i);
  if (!any || op.traits.takes_numbers) return op;
  std::lock_guard lock(mutex_);
  auto overloads = by_base_.find(text(op.schema.space(), "::", op.schema.base()));
  if (overloads == by_base_.end()) return op;
  for (const Op* other : overloads->second) {
    bool fits = other->schema.args.size() == args.size();
    for (size_t i = 0; fits && i < args.size(); ++i) {
      TypeKind wanted = stands_in(i) ? TypeKind::scalar : op.schema.args[i].type.kind;
      fits = other->schema.args[i].type.kind == wanted && other->schema.args[i].name == op.schema.args[i].name;
    }
    if (fits) return *other;
  }
  return op;
}

std::vector<const Op*> Registry::all() const {
  std::lock_guard lock(mutex_);
  std::vector<const Op*> out;
  for (const auto& [name, op] : by_name_)
    if (!op->functional) out.push_back(op);
  std::sort(out.begin(), out.end(), [](const Op* a, const Op* b) { return a->name() < b->name(); });
  return out;
}

void register_families(Registry& ops);  // made by the build: a line per file of ops/

Registry& open_registry() {
  static Registry& instance = *[] {
    auto* made = new Registry;  // never destroyed: ops are pointed to by graphs of any lifetime
    register_families(*made);
    return made;
  }();
  return instance;
}
const Registry& registry() { return open_registry(); }

}  // namespace tenon

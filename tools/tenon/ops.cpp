#include "tenon/io/json.h"
#include "tenon/rules/registry.h"
#include "tools/tenon/files.h"
#include "tools/tenon/verbs.h"

namespace tenon::tool {
namespace {

std::string_view name(OpKind kind) {
  switch (kind) {
    case OpKind::pointwise: return "pointwise";
    case OpKind::reduction: return "reduction";
    case OpKind::view: return "view";
    case OpKind::composite: return "composite";
    case OpKind::general: return "general";
    case OpKind::symbolic: return "symbolic";
    case OpKind::structural: return "structural";
  }
  unreachable();
}

// The rules written in the op's block; others follow from its kind.
std::vector<std::string> rules_of(const OpDef& def) {
  std::vector<std::string> rules;
  auto add = [&](bool given, const char* rule) {
    if (given) rules.push_back(rule);
  };
  add(def.meta, "meta");
  add(bool(def.scalar), "scalar");
  add(def.lower, "lower");
  add(def.view, "view");
  add(def.decompose, "decompose");
  add(bool(def.host), "host");
  add(def.symbolic, "symbolic");
  add(bool(def.vjp), "vjp");
  add(def.for_grad, "for_grad");
  add(def.to_torch, "to_torch");
  return rules;
}

std::vector<std::string> traits_of(const Traits& traits) {
  std::vector<std::string> out;
  if (traits.random) out.push_back("random");
  if (traits.asserts) out.push_back("asserts");
  if (traits.may_alias) out.push_back("may_alias");
  if (traits.stops_gradient) out.push_back("stops_gradient");
  return out;
}

void write_strings(JsonWriter& json, std::string_view key, const std::vector<std::string>& items) {
  json.key(key);
  json.begin_array();
  for (const std::string& item : items) json.string(item);
  json.end_array();
}

std::string as_json(const std::vector<const Op*>& ops) {
  JsonWriter json;
  json.begin_array();
  for (const Op* op : ops) {
    json.begin_object();
    json.field("name", op->name());
    json.field("schema", to_text(op->schema));
    json.field("kind", name(op->kind));
    write_strings(json, "rules", rules_of(*op->def));
    write_strings(json, "traits", traits_of(op->traits));
    json.end_object();
  }
  json.end_array();
  return json.take() + "\n";
}

}  // namespace

int list_ops(bool json) {
  std::vector<const Op*> ops = registry().all();
  if (json) {
    print(as_json(ops));
    return ok;
  }
  size_t width = 0;
  for (const Op* op : ops) width = std::max(width, op->name().size());
  for (const Op* op : ops) {
    std::string line = op->name();
    line.append(width + 2 - line.size(), ' ');
    line += name(op->kind);
    line.append(width + 14 - line.size(), ' ');
    line += join(rules_of(*op->def), " ");
    if (auto traits = traits_of(op->traits); !traits.empty()) line += text(" (", join(traits, ", "), ")");
    print(line + "\n");
  }
  print(text(ops.size(), " operators; in-place and out forms follow from them and are not listed\n"));
  return ok;
}

}  // namespace tenon::tool

#include "tenon/export/serde/upgrade.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>
#include <vector>

#include "tenon/export/serde/editable_json.h"

namespace tenon::serde {
namespace {

using Edit = EditableJson;

constexpr int64_t positional = 1, keyword = 2;  // NamedArgument.kind

// A graph, then the graphs in it.
template <class Visit>
void for_each_graph(Edit& graph, const Visit& visit) {
  visit(graph);
  for (Edit& node : graph.items_of("nodes"))
    for (Edit& input : node.items_of("inputs"))
      if (Edit* arg = input.find("arg"))
        if (Edit* subgraph = arg->find("as_graph"))
          if (Edit* inner = subgraph->find("graph")) for_each_graph(*inner, visit);
}

template <class Visit>
void for_each_graph_of(Edit& program, const Visit& visit) {
  Edit* module = program.find("graph_module");
  Edit* graph = module ? module->find("graph") : nullptr;
  if (graph) for_each_graph(*graph, visit);
}

template <class Visit>
void for_each_node_of(Edit& program, const Visit& visit) {
  for_each_graph_of(program, [&](Edit& graph) {
    for (Edit& node : graph.items_of("nodes")) visit(node);
  });
}

bool is_higher_order(Edit& node) {
  Edit* target = node.find("target");
  return target && starts_with(target->as_string(), "torch.ops.higher_order.");
}

// "dialect": "ATEN" becomes "verifiers": ["ATEN"].
void dialect_to_verifiers(Edit& program) {
  Edit* dialect = program.find("dialect");
  if (!dialect || program.find("verifiers")) return;
  Edit::Items list;
  list.push_back(Edit::string(dialect->as_string()));
  program.set("verifiers", Edit::array(std::move(list)));
}

// torch._higher_order_ops.wrap.wrap_with_set_grad_enabled is torch.ops.higher_order.wrap_with_set_grad_enabled.
void higher_order_targets(Edit& program) {
  for_each_node_of(program, [](Edit& node) {
    Edit* target = node.find("target");
    if (!target || !starts_with(target->as_string(), "torch._higher_order_ops.")) return;
    std::string_view name = target->as_string();
    target->set_text(text("torch.ops.higher_order.", name.substr(name.rfind('.') + 1)));
  });
}

// Files of 2.4 do not say which PyTorch wrote them; this is what later ones say of those.
void name_the_release(Edit& program) {
  if (!program.find("torch_version")) program.set("torch_version", Edit::string("<=2.4"));
}

// {"as_none": []} becomes {"as_none": true}, wherever it stands.
void none_is_true(Edit& value) {
  value.for_each_child([](std::string_view key, Edit& child) {
    if (key == "as_none" && child.is_empty_array()) child = Edit::boolean(true);
    else none_is_true(child);
  });
}

// The names in an expression, which is spelled as Python does: 2*s0 + 1.
std::vector<std::string_view> names_in(std::string_view expression) {
  auto letter = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  std::vector<std::string_view> out;
  for (size_t at = 0; at < expression.size();) {
    size_t end = at;
    while (end < expression.size() && (letter(expression[end]) || (expression[end] >= '0' && expression[end] <= '9')))
      ++end;
    if (end > at && letter(expression[at])) out.push_back(expression.substr(at, end - at));
    at = std::max(end, at + 1);
  }
  return out;
}

// PyTorch 2.5 left symbols of its tracer in the strides of static inputs. They have no range: the strides are those of
// the example inputs, as later releases write them.
void strides_without_range(Edit& program) {
  std::unordered_set<std::string_view> ranged;
  if (Edit* ranges = program.find("range_constraints"))
    ranges->for_each_child([&](std::string_view symbol, Edit&) { ranged.insert(symbol); });
  auto settle = [&](Edit& size) {
    Edit* expr = size.find("as_expr");
    Edit* text = expr ? expr->find("expr_str") : nullptr;
    Edit* hint = expr ? expr->find("hint") : nullptr;
    Edit* value = hint ? hint->find("as_int") : nullptr;
    if (!text || !value || !value->integer()) return;
    for (std::string_view name : names_in(text->as_string())) {
      if (ranged.contains(name)) continue;
      int64_t number = *value->integer();
      size = Edit::object();
      size.set("as_int", Edit::integer(number));
      return;
    }
  };
  for_each_graph_of(program, [&](Edit& graph) {
    Edit* table = graph.find("tensor_values");
    if (!table) return;
    table->for_each_child([&](std::string_view, Edit& meta) {
      for (Edit& stride : meta.items_of("strides")) settle(stride);
    });
  });
}

// An open end was the largest integer of sympy, or an infinity: now it is null.
void open_ranges(Edit& program) {
  constexpr int64_t largest = INT64_MAX - 1;
  Edit* ranges = program.find("range_constraints");
  if (!ranges) return;
  ranges->for_each_child([](std::string_view, Edit& range) {
    for (std::string_view end : {"min_val", "max_val"}) {
      Edit* value = range.find(end);
      if (!value) continue;
      std::optional<int64_t> integer = value->integer();
      std::optional<double> real = value->real();
      bool open = (integer && (*integer >= largest || *integer <= -largest)) || (real && std::isinf(*real));
      if (open) *value = Edit();
    }
  });
}

// A tuple of one tensor was a list of one; a tensor alone was that tensor. Now every result stands for itself, and
// is_hop_single_tensor_return tells the two apart.
void higher_order_results(Edit& program) {
  for_each_node_of(program, [](Edit& node) {
    if (!is_higher_order(node)) return;
    Edit* outputs = node.find("outputs");
    if (!outputs) return;
    std::span<Edit> items = outputs->items();
    bool single = items.size() == 1 && items[0].find("as_tensor");
    Edit* list = items.size() == 1 ? items[0].find("as_tensors") : nullptr;
    if (list) {
      Edit::Items results;
      for (Edit& tensor : list->items()) {
        results.push_back(Edit::object());
        results.back().set("as_tensor", std::move(tensor));
      }
      *outputs = Edit::array(std::move(results));
    }
    node.set("is_hop_single_tensor_return", Edit::boolean(single));
  });
}

// Arguments of higher-order operators: those with a name were given by keyword. Schemas tell for the others.
void argument_kinds(Edit& program) {
  for_each_node_of(program, [](Edit& node) {
    if (!is_higher_order(node)) return;
    for (Edit& input : node.items_of("inputs")) {
      Edit* name = input.find("name");
      bool named = name && !name->as_string().empty();
      input.set("kind", Edit::integer(named ? keyword : positional));
    }
  });
}

std::optional<Edit> take_argument(Edit& node, std::string_view name) {
  Edit* inputs = node.find("inputs");
  if (!inputs) return std::nullopt;
  Edit::Items kept;
  std::optional<Edit> taken;
  for (Edit& input : inputs->items()) {
    Edit* named = input.find("name");
    Edit* arg = input.find("arg");
    if (!taken && named && arg && named->as_string() == name) taken = std::move(*arg);
    else kept.push_back(std::move(input));
  }
  *inputs = Edit::array(std::move(kept));
  return taken;
}

void rename_argument(Edit& node, std::string_view from, std::string_view to) {
  for (Edit& input : node.items_of("inputs"))
    if (Edit* name = input.find("name"); name && name->as_string() == from) *name = Edit::string(to);
}

void set_target(Edit& node, std::string_view target) { node.set("target", Edit::string(target)); }

// cholesky(self, upper) is linalg_cholesky(self, *, upper).
void cholesky(Edit& node) {
  set_target(node, "torch.ops.aten.linalg_cholesky.default");
  for (Edit& input : node.items_of("inputs"))
    if (Edit* name = input.find("name"); name && name->as_string() == "upper")
      input.set("kind", Edit::integer(keyword));
}

// qr(self, some) is linalg_qr(A, mode), with the mode "reduced" or "complete".
void qr(Edit& node) {
  set_target(node, "torch.ops.aten.linalg_qr.default");
  rename_argument(node, "self", "A");
  std::optional<Edit> some = take_argument(node, "some");
  Edit* value = some ? some->find("as_bool") : nullptr;
  if (!value || value->is_true()) return;
  Edit mode = Edit::object(), input = Edit::object();
  mode.set("as_string", Edit::string("complete"));
  input.set("name", Edit::string("mode"));
  input.set("arg", std::move(mode));
  input.set("kind", Edit::integer(positional));
  node.append_to("inputs", std::move(input));
}

void gradient_of_distance(Edit& node) { rename_argument(node, "grad", "grad_output"); }

// Operators that PyTorch retired or gave other arguments. That needs no new schema version: any file may have them.
struct OperatorUpgrade {
  std::string_view target;
  void (*apply)(Edit& node);
};
constexpr OperatorUpgrade operators[] = {
    {"torch.ops.aten.cholesky.default", cholesky},
    {"torch.ops.aten.qr.default", qr},
    {"torch.ops.aten._cdist_backward.default", gradient_of_distance},
    {"torch.ops.aten._pdist_backward.default", gradient_of_distance},
};

bool has_old_operator(std::string_view json) {
  for (const OperatorUpgrade& upgrade : operators)
    if (json.find(upgrade.target) != json.npos) return true;
  return false;
}

void old_operators(Edit& program) {
  for_each_node_of(program, [](Edit& node) {
    Edit* target = node.find("target");
    if (!target) return;
    for (const OperatorUpgrade& upgrade : operators)
      if (target->as_string() == upgrade.target) {
        upgrade.apply(node);
        return;
      }
  });
}

struct Upgrader {
  int64_t major, minor;  // the schema that has the change
  void (*apply)(Edit& program);
};

// In the order of the schemas; each turns what the schema before it wrote into its own words. Expressions need none:
// both spellings are read wherever one stands.
constexpr Upgrader upgraders[] = {
    {6, 1, dialect_to_verifiers},  {7, 1, higher_order_targets}, {7, 3, name_the_release},     {8, 0, none_is_true},
    {8, 0, strides_without_range}, {8, 1, open_ranges},          {8, 4, higher_order_results}, {8, 5, argument_kinds},
};
constexpr std::pair<int64_t, int64_t> newest_change = {8, 5};
constexpr int64_t oldest_major = 5, newest_major = 8;

JsonLimits limits_of_flat(Budget& budget) {
  // The text is held several times while it is changed.
  return {.bytes = size_t{128} << 20, .values = size_t{6} << 20, .bare_infinities = true, .budget = &budget};
}

}  // namespace

JsonDocument read_program_json(std::string_view json, const std::string& subject, bool flat, Budget& budget) {
  std::string upgraded;
  {
    JsonDocument document(json, subject, flat ? limits_of_flat(budget) : JsonLimits{.budget = &budget});
    Json schema = document.root().at("schema_version");
    std::pair version(schema.at("major").as_int(), schema.at("minor").as_int());
    schema.require(version.first <= newest_major, "expected a schema version from ", oldest_major, " to ", newest_major,
                   ", found ", version.first, ".", version.second,
                   "; the file comes from a newer PyTorch than this Tenon knows");
    schema.require(version.first >= oldest_major, "expected a schema version from ", oldest_major, " to ", newest_major,
                   ", found ", version.first, ".", version.second,
                   "; export the model again with PyTorch 2.4 or later");
    if (version >= newest_change && !has_old_operator(json)) return document;
    Edit program(document.root());
    for (const Upgrader& upgrader : upgraders)
      if (version < std::pair(upgrader.major, upgrader.minor)) upgrader.apply(program);
    old_operators(program);
    upgraded = program.to_text();
  }
  return JsonDocument(upgraded, subject, limits_of_flat(budget));
}

}  // namespace tenon::serde

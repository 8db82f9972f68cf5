#include "tenon/export/serde/graph_writer.h"

#include <algorithm>

#include "tenon/export/serde/codes.h"
#include "tenon/sym/evaluate.h"
#include "tenon/sym/print.h"

namespace tenon::serde {
namespace {

void write_name(JsonWriter& out, std::string_view key, std::string_view name) {
  out.begin_object();
  out.field(key, name);
  out.end_object();
}

std::string_view reference_key(ValueType type) {
  switch (type) {
    case ValueType::tensor: return "as_tensor";
    case ValueType::integer: return "as_sym_int";
    case ValueType::floating: return "as_sym_float";
    case ValueType::boolean: return "as_sym_bool";
    case ValueType::custom_object: return "as_custom_obj";
    case ValueType::token: break;
  }
  unreachable();
}

void write_custom_object(JsonWriter& out, std::string_view name, std::string_view class_name) {
  out.begin_object();
  out.field("name", name);
  out.field("class_fqn", class_name);
  out.end_object();
}

// The inside of as_sym_int: a name or a constant.
void write_item(JsonWriter& out, const GraphBody& graph, const Arg& item) {
  out.begin_object();
  if (auto* v = item.get<Value>()) out.field("as_name", graph.info(*v).name);
  else if (auto* b = item.get<bool>()) out.field("as_bool", *b);
  else if (auto* d = item.get<double>()) out.key("as_float"), write_float(out, *d);
  else if (auto* i = item.get<SymInt>()) {
    expect(i->is_int(), "the size ", *i, " stands in an argument without a value that computes it");
    out.field("as_int", i->as_int());
  } else expect(false, "an item that is no number in a list of numbers");
  out.end_object();
}

void write_tensors(JsonWriter& out, const GraphBody& graph, const std::vector<Value>& list) {
  out.begin_array();
  for (Value v : list) write_name(out, "name", graph.info(v).name);
  out.end_array();
}

void write_ints(JsonWriter& out, const Sizes& sizes) {
  out.begin_array();
  for (SymInt s : sizes) {
    expect(s.is_int(), "the size ", s, " stands in an argument without a value that computes it");
    out.integer(s.as_int());
  }
  out.end_array();
}

void write_floats(JsonWriter& out, const std::vector<double>& list) {
  out.begin_array();
  for (double d : list) write_float(out, d);
  out.end_array();
}

template <class T>
bool all_are(const Arg::Items& items) {
  for (const Arg& item : items)
    if (!item.is<T>()) return false;
  return true;
}

void write_items(WriteContext& context, const GraphBody& graph, const Arg::Items& items) {
  JsonWriter& out = context.out;
  bool tensors = all_are<std::vector<Value>>(items), ints = all_are<Sizes>(items),
       floats = all_are<std::vector<double>>(items);
  if (items.empty()) out.key("as_tensors");
  else if (tensors) out.key("as_nested_tensors");
  else if (ints) out.key("as_int_lists");
  else if (floats) out.key("as_float_lists");
  else {
    ValueType type = ValueType::integer;
    for (const Arg& item : items) {
      if (auto* v = item.get<Value>()) type = graph.info(*v).type;
      else if (item.is<double>()) type = ValueType::floating;
      else if (item.is<bool>()) type = ValueType::boolean;
    }
    expect(type != ValueType::tensor, "a list that mixes tensors and numbers");
    out.key(std::string(reference_key(type)) + "s");
  }
  out.begin_array();
  for (const Arg& item : items) {
    if (tensors) write_tensors(out, graph, *item.get<std::vector<Value>>());
    else if (ints) write_ints(out, *item.get<Sizes>());
    else if (floats) write_floats(out, *item.get<std::vector<double>>());
    else write_item(out, graph, item);
  }
  out.end_array();
}

void write_value_list(JsonWriter& out, const GraphBody& graph, const std::vector<Value>& list) {
  bool optional = false;
  for (Value v : list) optional |= !v;
  if (!optional) {
    out.key("as_tensors");
    write_tensors(out, graph, list);
    return;
  }
  out.key("as_optional_tensors");
  out.begin_array();
  for (Value v : list) {
    out.begin_object();
    if (v) out.key("as_tensor"), write_name(out, "name", graph.info(v).name);
    else out.field("as_none", true);
    out.end_object();
  }
  out.end_array();
}

bool is_region(const Op& op) { return starts_with(op.target, "torch.ops.higher_order."); }
bool has_schema(const Op& op) { return !op.traits.unknown && starts_with(op.target, "torch.ops.") && !is_region(op); }

// What the expression was for the example inputs; null where a symbol had no value then, and for conditions, as in
// PyTorch.
void write_hint(WriteContext& context, SymInt value) {
  JsonWriter& out = context.out;
  sym::Bindings bindings;
  bool known = !value.is_boolean_typed();
  for (SymInt symbol : sym::symbols_of(value)) {
    auto hint = context.hints.find(std::string(symbol.name()));
    if (hint == context.hints.end()) known = false;
    else bindings.set(symbol, hint->second);
  }
  if (!known) {
    out.null();
    return;
  }
  out.begin_object();
  if (value.is_integer_typed()) out.field("as_int", sym::evaluate(value, bindings));
  else out.key("as_float"), write_float(out, sym::evaluate_real(value, bindings));
  out.end_object();
}

class GraphWriter {
 public:
  GraphWriter(WriteContext& context, const GraphBody& graph) : context_(context), out_(context.out), graph_(graph) {}

  void write() {
    out_.begin_object();
    write_list("inputs", graph_.inputs);
    write_list("outputs", graph_.outputs);
    out_.key("nodes");
    out_.begin_array();
    for (const Node& node : graph_.nodes) write_node(node);
    out_.end_array();
    write_table("tensor_values", ValueType::tensor);
    write_table("sym_int_values", ValueType::integer);
    write_table("sym_bool_values", ValueType::boolean);
    out_.field("is_single_tensor_return", graph_.single_tensor_return);
    write_table("custom_obj_values", ValueType::custom_object);
    write_table("sym_float_values", ValueType::floating);
    out_.end_object();
  }

 private:
  void write_list(std::string_view key, const Args& args) {
    out_.key(key);
    out_.begin_array();
    for (const Arg& arg : args) write_argument(context_, graph_, arg);
    out_.end_array();
  }

  // Only what inputs and nodes define: values that passes left behind have no place in a file.
  void write_table(std::string_view key, ValueType type) {
    out_.key(key);
    out_.begin_object();
    auto visit = [&](Value v) {
      if (!v || graph_.info(v).type != type) return;
      out_.key(graph_.info(v).name);
      if (type == ValueType::tensor) write_tensor_meta(context_, graph_.info(v).meta);
      else if (type == ValueType::custom_object)
        write_custom_object(out_, graph_.info(v).name, graph_.info(v).class_name);
      else write_symbolic(context_, graph_.info(v).expr);
    };
    for (const Arg& input : graph_.inputs) for_each_tensor(input, visit);
    for (const Node& node : graph_.nodes) for_each_result(node, visit);
    out_.end_object();
  }

  void write_input(std::string_view name, const Arg& arg, bool keyword) {
    out_.begin_object();
    out_.field("name", name);
    out_.key("arg");
    write_argument(context_, graph_, arg);
    out_.key("kind");
    out_.integer(keyword ? 2 : 1);
    out_.end_object();
  }

  void write_schema_inputs(const Node& node) {
    const Schema& schema = node.op->schema;
    auto by_keyword = [&](const SchemaArg& slot) {
      return slot.keyword_only || std::find(node.origin.keywords.begin(), node.origin.keywords.end(), slot.name) !=
                                      node.origin.keywords.end();
    };
    auto written = [&](size_t i) {
      if (node.given != ~0ull && (node.given >> i & 1)) return true;
      const SchemaArg& slot = schema.args[i];
      return !slot.has_default ||
             node.args[i] != map_tensors<Value>(slot.default_value, [](const Tensor&) { return Value{}; });
    };
    size_t positional = 0;  // arguments before this one are written, also where they equal the default
    for (size_t i = 0; i < schema.args.size(); ++i)
      if (!by_keyword(schema.args[i]) && written(i)) positional = i + 1;
    for (size_t i = 0; i < schema.args.size(); ++i) {
      bool keyword = by_keyword(schema.args[i]);
      if (written(i) || (!keyword && i < positional)) write_input(schema.args[i].name, node.args[i], keyword);
    }
  }

  void write_inputs(const Node& node) {
    out_.key("inputs");
    out_.begin_array();
    if (has_schema(*node.op)) {
      write_schema_inputs(node);
    } else {
      size_t first_keyword = node.args.size() - std::min(node.args.size(), node.origin.keywords.size());
      for (size_t i = 0; i < node.args.size(); ++i) {
        if (i >= first_keyword) write_input(node.origin.keywords[i - first_keyword], node.args[i], true);
        else
          write_input(is_region(*node.op) || i >= node.op->schema.args.size() ? "" : node.op->schema.args[i].name,
                      node.args[i], false);
      }
    }
    out_.end_array();
  }

  // A node with one result bears its name; the others have names of their own, which a reader makes up where there are
  // none.
  void write_name_of(const Node& node) {
    bool region = is_region(*node.op);
    out_.key("name");
    if (node.results.size() == 1 && node.results[0].is<Value>() && (!region || node.origin.hop_single_return > 0))
      out_.string(graph_.info(*node.results[0].get<Value>()).name);
    else if (!node.origin.name.empty()) out_.string(node.origin.name);
    else out_.null();
  }

  void write_node(const Node& node) {
    out_.begin_object();
    out_.field("target", node.op->target);
    write_inputs(node);
    write_list("outputs", node.results);
    out_.key("metadata");
    out_.begin_object();
    for (const auto& [key, value] : *node.origin.metadata) out_.field(key, value);
    out_.end_object();
    out_.key("is_hop_single_tensor_return");
    if (node.origin.hop_single_return >= 0) out_.boolean(node.origin.hop_single_return > 0);
    else if (is_region(*node.op)) out_.boolean(false);
    else out_.null();
    write_name_of(node);
    out_.end_object();
  }

  WriteContext& context_;
  JsonWriter& out_;
  const GraphBody& graph_;
};

}  // namespace

void write_symbolic(WriteContext& context, SymInt value) {
  JsonWriter& out = context.out;
  out.begin_object();
  if (value.is_int()) out.field("as_int", value.as_int());
  else if (value.is(sym::Kind::real)) out.key("as_float"), write_float(out, value.real_value());
  else if (value.is(sym::Kind::boolean)) out.field("as_bool", value.boolean_value());
  else {
    out.key("as_expr");
    out.begin_object();
    out.field("expr_str", sym::to_srepr(value));
    out.key("hint");
    write_hint(context, value);
    out.end_object();
  }
  out.end_object();
}

void write_tensor_meta(WriteContext& context, const TensorMeta& meta) {
  JsonWriter& out = context.out;
  auto write_sizes = [&](std::string_view key, const Sizes& sizes) {
    out.key(key);
    out.begin_array();
    for (SymInt s : sizes) write_symbolic(context, s);
    out.end_array();
  };
  out.begin_object();
  out.field("dtype", dtype_code(meta.dtype));
  write_sizes("sizes", meta.sizes);
  out.field("requires_grad", meta.requires_grad);
  out.key("device");
  write_device(out, meta.device);
  write_sizes("strides", meta.strides);
  out.key("storage_offset");
  write_symbolic(context, meta.offset);
  out.key("layout");
  out.integer(static_cast<int64_t>(meta.layout));
  out.end_object();
}

void write_argument(WriteContext& context, const GraphBody& graph, const Arg& arg) {
  JsonWriter& out = context.out;
  out.begin_object();
  if (arg.is_none()) out.field("as_none", true);
  else if (auto* v = arg.get<Value>()) {
    if (!*v) {
      out.field("as_none", true);
    } else {
      const ValueInfo& info = graph.info(*v);
      out.key(reference_key(info.type));
      if (info.type == ValueType::custom_object) write_custom_object(out, info.name, info.class_name);
      else write_name(out, info.type == ValueType::tensor ? "name" : "as_name", info.name);
    }
  } else if (auto* b = arg.get<bool>()) out.field("as_bool", *b);
  else if (auto* i = arg.get<SymInt>()) {
    expect(i->is_int(), "the size ", *i, " stands in an argument without a value that computes it");
    out.field("as_int", i->as_int());
  } else if (auto* d = arg.get<double>()) out.key("as_float"), write_float(out, *d);
  else if (auto* s = arg.get<std::string>()) out.field("as_string", *s);
  else if (auto* t = arg.get<DType>()) out.field("as_scalar_type", dtype_code(*t));
  else if (auto* device = arg.get<Device>()) out.key("as_device"), write_device(out, *device);
  else if (auto* layout = arg.get<Layout>()) out.field("as_layout", static_cast<int64_t>(*layout));
  else if (auto* format = arg.get<MemoryFormat>()) out.field("as_memory_format", static_cast<int64_t>(*format));
  else if (auto* list = arg.get<std::vector<Value>>()) write_value_list(out, graph, *list);
  else if (auto* sizes = arg.get<Sizes>()) out.key("as_ints"), write_ints(out, *sizes);
  else if (auto* floats = arg.get<std::vector<double>>()) out.key("as_floats"), write_floats(out, *floats);
  else if (auto* bools = arg.get<std::vector<bool>>()) {
    out.key("as_bools");
    out.begin_array();
    for (bool item : *bools) out.boolean(item);
    out.end_array();
  } else if (auto* strings = arg.get<std::vector<std::string>>()) {
    out.key("as_strings");
    out.begin_array();
    for (const std::string& item : *strings) out.string(item);
    out.end_array();
  } else if (auto* subgraph = arg.get<Subgraph>()) {
    out.key("as_graph");
    out.begin_object();
    out.field("name", subgraph->name);
    out.key("graph");
    write_graph(context, *subgraph->body);
    out.end_object();
  } else if (auto* op = arg.get<OperatorName>()) out.field("as_operator", op->name);
  else if (auto* c = arg.get<std::complex<double>>()) {
    out.key("as_complex");
    out.begin_object();
    out.key("real"), write_float(out, c->real());
    out.key("imag"), write_float(out, c->imag());
    out.end_object();
  } else if (auto* object = arg.get<ObjectName>()) {
    out.key("as_custom_obj");
    write_custom_object(out, object->name, object->class_name);
  } else if (auto* mapping = arg.get<Arg::Mapping>()) {
    out.key("as_string_to_argument");
    out.begin_object();
    for (size_t i = 0; i < mapping->keys.size(); ++i) {
      out.key(mapping->keys[i]);
      write_argument(context, graph, mapping->values[i]);
    }
    out.end_object();
  } else if (auto* items = arg.get<Arg::Items>()) write_items(context, graph, *items);
  out.end_object();
}

void write_graph(WriteContext& context, const GraphBody& graph) { GraphWriter(context, graph).write(); }

}  // namespace tenon::serde

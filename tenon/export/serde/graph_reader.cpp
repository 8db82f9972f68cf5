#include "tenon/export/serde/graph_reader.h"

#include "tenon/export/serde/codes.h"

namespace tenon::serde {
namespace {

std::string_view table_of(ValueType type) {
  switch (type) {
    case ValueType::tensor: return "tensor_values";
    case ValueType::integer: return "sym_int_values";
    case ValueType::floating: return "sym_float_values";
    case ValueType::boolean: return "sym_bool_values";
    case ValueType::token:
    case ValueType::custom_object: return "custom_obj_values";
  }
  unreachable();
}

std::string_view noun(ValueType type) {
  switch (type) {
    case ValueType::tensor: return "a tensor";
    case ValueType::integer: return "an integer";
    case ValueType::floating: return "a float";
    case ValueType::boolean: return "a boolean";
    case ValueType::token: return "a token";
    case ValueType::custom_object: return "a custom object";
  }
  unreachable();
}

Sizes read_ints(Json list) {
  Sizes out;
  for (Json item : list.items()) out.push_back(item.as_int());
  return out;
}

std::vector<double> read_floats(Json list) {
  std::vector<double> out;
  for (Json item : list.items()) out.push_back(read_float(item));
  return out;
}

// Arguments that hold no value of the graph. False where the key is another.
bool read_plain(JsonMember argument, Arg& out) {
  auto [key, value] = argument;
  if (key == "as_none") out = Arg();
  else if (key == "as_int") out = value.as_int();
  else if (key == "as_ints") out = read_ints(value);
  else if (key == "as_float") out = read_float(value);
  else if (key == "as_floats") out = read_floats(value);
  else if (key == "as_bool") out = value.as_bool();
  else if (key == "as_string") out = std::string(value.as_string());
  else if (key == "as_scalar_type") out = read_dtype(value);
  else if (key == "as_memory_format") out = read_memory_format(value);
  else if (key == "as_layout") out = read_layout(value);
  else if (key == "as_device") out = read_device(value);
  else if (key == "as_operator") out = OperatorName{std::string(value.as_string())};
  else if (key == "as_complex") out = std::complex<double>(read_float(value.at("real")), read_float(value.at("imag")));
  else if (key == "as_bools") {
    std::vector<bool> list;
    for (Json item : value.items()) list.push_back(item.as_bool());
    out = list;
  } else if (key == "as_strings") {
    std::vector<std::string> list;
    for (Json item : value.items()) list.emplace_back(item.as_string());
    out = list;
  } else if (key == "as_int_lists" || key == "as_float_lists") {
    Arg::Items items;
    for (Json item : value.items())
      items.push_back(key == "as_int_lists" ? Arg(read_ints(item)) : Arg(read_floats(item)));
    out = items;
  } else {
    return false;
  }
  return true;
}

struct Reference {
  std::string_view name;
  ValueType type;
};

// A value referred to by one argument, where the key says so: {"as_tensor": {"name": "x"}}, {"as_sym_int": {"as_name":
// "n"}}.
std::optional<Reference> reference_in(JsonMember argument) {
  auto [key, value] = argument;
  if (key == "as_tensor") return Reference{value.at("name").as_string(), ValueType::tensor};
  if (key == "as_custom_obj") return Reference{value.at("name").as_string(), ValueType::custom_object};
  std::optional<ValueType> type;
  if (key == "as_sym_int") type = ValueType::integer;
  if (key == "as_sym_float") type = ValueType::floating;
  if (key == "as_sym_bool") type = ValueType::boolean;
  if (type)
    if (JsonMember member = read_union(value); member.key == "as_name")
      return Reference{member.value.as_string(), *type};
  return std::nullopt;
}

// {"as_int": 3} inside as_sym_int, as_sym_ints and their like.
Arg read_number(Json value) {
  JsonMember member = read_union(value);
  if (member.key == "as_int") return member.value.as_int();
  if (member.key == "as_float") return read_float(member.value);
  if (member.key == "as_bool") return member.value.as_bool();
  value.fail("expected as_name or a constant, found ", quoted(member.key));
}

bool fits(ValueType type, TypeKind slot) {
  switch (slot) {
    case TypeKind::other: return true;
    case TypeKind::tensor:
    case TypeKind::scalar: return type != ValueType::custom_object && type != ValueType::token;
    case TypeKind::integer: return type == ValueType::integer || type == ValueType::boolean;
    case TypeKind::floating: return type == ValueType::floating || type == ValueType::integer;
    case TypeKind::boolean: return type == ValueType::boolean;
    default: return false;
  }
}

bool is_identifier(std::string_view s) {
  bool good = !s.empty() && !(s[0] >= '0' && s[0] <= '9');
  for (char c : s)
    good = good && (c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'));
  return good;
}

bool is_module_of_numbers(std::string_view name) {
  return name == "_operator" || name == "math" || name == "torch" || name == "builtins";
}

// What PyTorch writes: torch.ops.aten.add.Tensor, torch.ops.higher_order.cond, and functions of Python's modules:
// _operator.add, math.ceil, torch.sym_max. Whether there is such an operator is another question.
std::string_view read_target(Json json) {
  constexpr size_t longest = 500;
  std::string_view target = json.as_string();
  json.require(target.size() <= longest, "an operator's name has ", target.size(), " characters; at most ", longest,
               " are allowed");
  std::vector<std::string> parts = split(target, '.');
  bool good = true;
  for (const std::string& part : parts) good = good && is_identifier(part);
  if (starts_with(target, "torch.ops.")) good = good && parts.size() == (parts[2] == "higher_order" ? 4u : 5u);
  else good = good && parts.size() >= 2 && is_module_of_numbers(parts[0]);
  json.require(good, "expected an operator such as torch.ops.aten.add.Tensor, found ", quoted(target));
  return target;
}

// Names become parts of printed code and of other names.
void check_name(std::string_view name, Json where) {
  constexpr size_t longest = 2000;
  where.require(name.size() <= longest, "a name has ", name.size(), " characters; at most ", longest, " are allowed");
  if (!is_printable(name)) where.fail("the name ", quoted(name), " holds characters that cannot be shown");
}

bool is_number(ValueType type) {
  return type == ValueType::integer || type == ValueType::floating || type == ValueType::boolean;
}

class GraphReader {
 public:
  GraphReader(Json json, ReadContext& context) : json_(json), context_(context) { graph_->shapes = context.shapes; }

  Graph read() {
    for (Json input : json_.at("inputs").items()) graph_->inputs.push_back(read_result(input));
    for (Json node : json_.at("nodes").items()) read_node(node);
    for (Json output : json_.at("outputs").items()) graph_->outputs.push_back(read_argument(output));
    if (auto single = json_.given("is_single_tensor_return")) graph_->single_tensor_return = single->as_bool();
    check_tables();
    return std::move(graph_);
  }

 private:
  // Names the values of a table that nothing defines.
  void check_tables() {
    for (ValueType type :
         {ValueType::tensor, ValueType::integer, ValueType::floating, ValueType::boolean, ValueType::custom_object}) {
      auto table = json_.given(table_of(type));
      if (!table || table->size() == counts_[static_cast<int>(type)]) continue;
      for (JsonMember member : table->members())
        member.value.require(defined_.contains(member.key), "describes ", quoted(member.key),
                             ", which no input and no node of this graph defines");
    }
  }

  Value define(Reference ref, Json where) {
    if (defined_.contains(ref.name)) where.fail("the value ", quoted(ref.name), " is defined twice");
    where.require(!ref.name.empty(), "a value has an empty name");
    auto table = json_.given(table_of(ref.type));
    auto meta = table ? table->find(ref.name) : std::nullopt;
    if (!meta) where.fail("the value ", quoted(ref.name), " has no entry in ", table_of(ref.type));
    ValueInfo info{.name = std::string(ref.name), .type = ref.type};
    if (ref.type == ValueType::tensor) info.meta = read_tensor_meta(*meta, context_);
    else if (ref.type == ValueType::custom_object) info.class_name = meta->at("class_fqn").as_string();
    else info.expr = read_symbolic(*meta, context_);
    ++counts_[static_cast<int>(ref.type)];
    check_name(ref.name, where);
    context_.budget.take_bytes(2 * sizeof(ValueInfo) + 4 * ref.name.size(), "a graph");
    Value value = add_value(graph_.body(), std::move(info));
    defined_.emplace(ref.name, value);
    return value;
  }

  Value use(Reference ref, Json where) {
    auto found = defined_.find(ref.name);
    if (found == defined_.end()) {
      auto table = json_.given(table_of(ref.type));
      where.fail("uses the value ", quoted(ref.name),
                 table && table->find(ref.name) ? " before it is defined" : ", which this graph does not define");
    }
    ValueType type = graph_->info(found->second).type;
    if (type != ref.type) where.fail("expected ", noun(ref.type), ", but ", quoted(ref.name), " is ", noun(type));
    return found->second;
  }

  // An input of the graph or a result of a node: its values come into being here.
  Arg read_result(Json json) {
    JsonMember argument = read_union(json);
    if (auto ref = reference_in(argument)) return define(*ref, json);
    auto [key, value] = argument;
    if (key == "as_tensors") {
      std::vector<Value> list;
      for (Json item : value.items()) list.push_back(define({item.at("name").as_string(), ValueType::tensor}, item));
      return list;
    }
    if (key == "as_optional_tensors") {
      std::vector<Value> list;
      for (Json item : value.items()) {
        auto ref = reference_in(read_union(item));
        list.push_back(ref ? define(*ref, item) : Value{});
      }
      return list;
    }
    if (key == "as_optional_tensor") return read_result(value);
    Arg constant;
    if (!read_plain(argument, constant)) json.fail("expected a tensor, a number or a constant, found ", quoted(key));
    return constant;
  }

  Arg read_argument(Json json) {
    JsonMember argument = read_union(json);
    if (auto ref = reference_in(argument)) {
      if (ref->type != ValueType::custom_object || defined_.contains(ref->name)) return use(*ref, json);
      return ObjectName{std::string(ref->name), std::string(argument.value.at("class_fqn").as_string())};
    }
    Arg plain;
    if (read_plain(argument, plain)) return plain;
    auto [key, value] = argument;
    if (key == "as_tensors") return read_tensors(value);
    if (key == "as_sym_int" || key == "as_sym_float" || key == "as_sym_bool") return read_number(value);
    if (key == "as_sym_ints") return read_numbers(value, ValueType::integer);
    if (key == "as_sym_floats") return read_numbers(value, ValueType::floating);
    if (key == "as_sym_bools") return read_numbers(value, ValueType::boolean);
    if (key == "as_optional_tensor") return read_argument(value);
    if (key == "as_optional_tensors") {
      std::vector<Value> list;
      for (Json item : value.items()) {
        JsonMember member = read_union(item);
        auto ref = reference_in(member);
        item.require(ref || member.key == "as_none", "expected as_tensor or as_none, found ", quoted(member.key));
        list.push_back(ref ? use(*ref, item) : Value{});
      }
      return list;
    }
    if (key == "as_nested_tensors") {
      Arg::Items items;
      for (Json item : value.items()) items.push_back(read_tensors(item));
      return items;
    }
    if (key == "as_string_to_argument") {
      Arg::Mapping mapping;
      for (JsonMember member : value.members()) {
        mapping.keys.emplace_back(member.key);
        mapping.values.push_back(read_argument(member.value));
      }
      return mapping;
    }
    if (key == "as_graph")
      return Subgraph{std::string(read_name(value.at("name"))),
                      std::shared_ptr<const GraphBody>(read_graph(value.at("graph"), context_).release())};
    json.fail("expected an argument, found one of the unknown kind ", quoted(key));
  }

  std::vector<Value> read_tensors(Json list) {
    std::vector<Value> out;
    for (Json item : list.items()) out.push_back(use({item.at("name").as_string(), ValueType::tensor}, item));
    return out;
  }

  // Values and constants mixed become items; constants alone the plain list that they are.
  Arg read_numbers(Json list, ValueType type) {
    Arg::Items items;
    bool symbolic = false;
    for (Json item : list.items()) {
      JsonMember member = read_union(item);
      bool named = member.key == "as_name";
      symbolic |= named;
      items.push_back(named ? Arg(use({member.value.as_string(), type}, item)) : read_number(item));
    }
    if (symbolic) return items;
    if (type == ValueType::integer) {
      Sizes sizes;
      for (size_t i = 0; i < items.size(); ++i) {
        list[i].require(items[i].is<SymInt>(), "expected an integer");
        sizes.push_back(*items[i].get<SymInt>());
      }
      return sizes;
    }
    if (type == ValueType::floating) {
      std::vector<double> floats;
      for (size_t i = 0; i < items.size(); ++i) {
        list[i].require(items[i].is<double>(), "expected a float");
        floats.push_back(*items[i].get<double>());
      }
      return floats;
    }
    std::vector<bool> bools;
    for (size_t i = 0; i < items.size(); ++i) {
      list[i].require(items[i].is<bool>(), "expected a boolean");
      bools.push_back(*items[i].get<bool>());
    }
    return bools;
  }

  void read_node(Json json) {
    Node node;
    std::string_view target = read_target(json.at("target"));
    Json inputs = json.at("inputs");
    Json outputs = json.at("outputs");
    node.op = context_.ops.find(target);
    bool known = node.op != nullptr;
    context_.budget.take_bytes(sizeof(Node) + inputs.size() * sizeof(Arg) + outputs.size() * sizeof(Arg), "a graph");
    if (!known) {
      context_.budget.take_bytes(sizeof(Op) + (inputs.size() + outputs.size()) * sizeof(SchemaArg), "a graph");
      std::vector<std::string> names;
      for (Json input : inputs.items()) names.emplace_back(read_name(input.at("name")));
      node.op = add_unknown_op(graph_.body(), target, names, outputs.size());
    }
    if (auto name = json.given("name")) node.origin.name = read_name(*name);
    bool schema_op = known && starts_with(target, "torch.ops.") && !starts_with(target, "torch.ops.higher_order.");
    if (schema_op) read_by_schema(node, json, inputs);
    else read_as_written(node, inputs);
    bool symbolic = known && node.op->kind == OpKind::symbolic;
    if (schema_op && outputs.size() != node.op->schema.returns.size())
      json.fail("node ", label(node, target), ": expected ", node.op->schema.returns.size(),
                " results as its schema has, found ", outputs.size());
    if (symbolic && outputs.size() != 1)
      json.fail("node ", label(node, target), ": expected one result, found ", outputs.size());
    for (Json output : outputs.items()) node.results.push_back(read_result(output));
    if (schema_op) check_results(node, outputs, target);
    if (symbolic) check_numbers(node, json);
    if (auto metadata = json.given("metadata"))
      for (JsonMember member : metadata->members())
        node.origin.metadata.edit().emplace_back(member.key, member.value.as_string());
    if (auto single = json.given("is_hop_single_tensor_return")) node.origin.hop_single_return = single->as_bool();
    add_node(graph_.body(), std::move(node));
  }

  static std::string label(const Node& node, std::string_view target) {
    return node.origin.name.empty() ? std::string(target) : text(quoted(node.origin.name), " (", target, ")");
  }

  // Region and control flow ops, Python operators, unknown ops.
  void read_as_written(Node& node, Json inputs) {
    for (Json input : inputs.items()) {
      node.args.push_back(read_argument(input.at("arg")));
      auto kind = input.given("kind");
      bool keyword = kind && kind->as_int() == 2;
      if (keyword) node.origin.keywords.emplace_back(read_name(input.at("name")));
      else input.require(node.origin.keywords.empty(), "a positional argument stands behind a keyword argument");
    }
    bool counted = node.op->kind == OpKind::symbolic && !node.op->schema.args.empty();
    if (counted && node.args.size() != node.op->schema.args.size())
      inputs.fail("node ", label(node, node.op->target), ": expected ", node.op->schema.args.size(),
                  " arguments, found ", node.args.size());
  }

  // Operators on numbers have no types in their schemas: they take numbers and give one.
  void check_numbers(const Node& node, Json json) {
    auto is_number_arg = [&](const Arg& arg) {
      auto* v = arg.get<Value>();
      return v ? *v && is_number(graph_->info(*v).type) : arg.is_number();
    };
    for (const Arg& arg : node.args)
      if (!is_number_arg(arg))
        json.fail("node ", label(node, node.op->target), ": expected numbers, got ", to_text(graph_.body(), arg));
    if (!node.results[0].is<Value>() || !is_number_arg(node.results[0]))
      json.fail("node ", label(node, node.op->target), ": expected a number as its result, found ",
                to_text(graph_.body(), node.results[0]));
  }

  void read_by_schema(Node& node, Json json, Json inputs) {
    const Schema& schema = node.op->schema;
    node.given = 0;
    node.args.resize(schema.args.size());
    for (Json input : inputs.items()) {
      std::string_view name = input.at("name").as_string();
      int at = schema.find(name);
      if (at < 0)
        input.fail("node ", label(node, node.op->target), " has no argument ", quoted(name), "; its schema is ",
                   to_text(schema));
      auto bit = uint64_t{1} << at;
      if (node.given & bit)
        input.fail("node ", label(node, node.op->target), ": argument ", quoted(name), " is given twice");
      node.given |= bit;
      const SchemaArg& slot = schema.args[static_cast<size_t>(at)];
      node.args[static_cast<size_t>(at)] = fitted(read_argument(input.at("arg")), slot, node, input);
      auto kind = input.given("kind");
      if (!slot.keyword_only && kind && kind->as_int() == 2) node.origin.keywords.emplace_back(name);
    }
    for (size_t i = 0; i < schema.args.size(); ++i) {
      if (node.given >> i & 1) continue;
      const SchemaArg& slot = schema.args[i];
      if (!slot.has_default)
        json.fail("node ", label(node, node.op->target), ": the argument ", quoted(slot.name), " (", slot.type.text,
                  ") is missing; its schema is ", to_text(schema));
      node.args[i] = map_tensors<Value>(slot.default_value, [](const Tensor&) { return Value{}; });
    }
  }

  // The argument in the form its slot has.
  Arg fitted(Arg arg, const SchemaArg& slot, const Node& node, Json where) {
    bool good = true;
    bool has_values = false;
    for_each_tensor(arg, [&](Value v) {
      has_values = true;
      good &= v ? fits(graph_->info(v).type, slot.type.kind) : slot.type.optional_items;
    });
    std::optional<std::string> expected;
    if (has_values) {
      // Values stand in as tensors, which coerce lets pass in every slot that may be computed.
      CallArg call =
          map_tensors<Tensor>(arg, [&](Value v) { return v ? Tensor(TensorMeta(), &graph_.body(), v.id) : Tensor(); });
      expected = coerce(call, slot);
      if (!expected && good && arg.is<Arg::Items>())
        arg = map_tensors<Value>(call, [](const Tensor& t) { return t ? Value{t.impl()->value} : Value{}; });
    } else {
      CallArg call = map_tensors<Tensor>(arg, [](Value) { return Tensor(); });
      expected = coerce(call, slot);
      if (!expected) arg = map_tensors<Value>(call, [](const Tensor&) { return Value{}; });
    }
    if (!good || expected)
      where.fail("node ", label(node, node.op->target), ": argument ", quoted(slot.name), ": expected ", slot.type.text,
                 ", got ", to_text(graph_.body(), arg));
    return arg;
  }

  void check_results(const Node& node, Json outputs, std::string_view target) {
    for (size_t i = 0; i < node.results.size(); ++i) {
      const Type& type = node.op->schema.returns[i].type;
      const Arg& result = node.results[i];
      bool good = true;
      if (type.list) good = result.is<std::vector<Value>>() || result.is_none();
      else if (auto* v = result.get<Value>()) good = fits(graph_->info(*v).type, type.kind);
      else good = result.is_none() || result.is_number();
      if (type.kind == TypeKind::tensor && result.is<Value>())
        good &= graph_->info(*result.get<Value>()).type == ValueType::tensor;
      if (!good) outputs[i].fail("node ", label(node, target), ": expected ", type.text, " as result ", i);
    }
  }

  Json json_;
  ReadContext& context_;
  Graph graph_;
  std::unordered_map<std::string_view, Value> defined_;
  size_t counts_[6] = {};
};

}  // namespace

std::string_view read_name(Json json) {
  check_name(json.as_string(), json);
  return json.as_string();
}

Arg read_constant(Json json) {
  JsonMember argument = read_union(json);
  Arg out;
  if (!read_plain(argument, out)) json.fail("expected a constant, found ", quoted(argument.key));
  return out;
}

Graph read_graph(Json graph, ReadContext& context) { return GraphReader(graph, context).read(); }

Names names_of(const GraphBody& graph) {
  Names names;
  for (uint32_t id = 0; id < graph.values.size(); ++id) names.emplace(graph.values[id].name, Value{id});
  return names;
}

Arg read_reference(Json json, const Names& names) {
  JsonMember argument = read_union(json);
  auto ref = reference_in(argument);
  if (!ref) {
    if (argument.key == "as_sym_int" || argument.key == "as_sym_float" || argument.key == "as_sym_bool")
      return read_number(argument.value);
    return read_constant(json);
  }
  auto found = names.find(ref->name);
  json.require(found != names.end(), "refers to the value ", quoted(ref->name), ", which the graph does not define");
  return found->second;
}

}  // namespace tenon::serde

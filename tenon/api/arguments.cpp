#include "tenon/api/arguments.h"

#include <algorithm>

namespace tenon::v0::detail {
namespace {

using tenon::quoted;
using tenon::Tree;

std::string plain_key(const std::string& spelled) {  // a string's key stands in quotes in the tree
  bool in_quotes =
      spelled.size() >= 2 && (spelled.front() == '"' || spelled.front() == '\'') && spelled.back() == spelled.front();
  return in_quotes ? spelled.substr(1, spelled.size() - 2) : spelled;
}

std::string at_key(const std::string& path, const std::string& key) {
  std::string in_quotes = quoted(key, 200);
  in_quotes.front() = in_quotes.back() = '"';
  return tenon::text(path, "[", in_quotes, "]");
}

bool is_dictionary(const Tree& tree) {
  return !tree.is_leaf() && tree.keys.size() == tree.children.size() &&
         (tree.type == "builtins.dict" || tree.type == "collections.OrderedDict" ||
          tree.type == "collections.defaultdict" || tree.type.find("immutable_dict") != std::string::npos);
}

bool is_list(const Tree& tree) {
  return !tree.is_leaf() && (tree.type == "builtins.list" || tree.type.find("immutable_list") != std::string::npos ||
                             tree.type == "collections.deque");
}

class Flattening {
 public:
  explicit Flattening(const Takes& takes) : takes_(takes) {}

  Arguments run(const std::vector<Value>& args, const Kwargs& kwargs) {
    const Tree& root = takes_.tree;
    tenon::expect(root.children.size() == 2, "the tree of a program's arguments has no two parts");
    const Tree& positional = root.children[0];
    const Tree& keywords = root.children[1];
    const std::vector<std::string>& names = takes_.names;
    std::vector<bool> used(kwargs.entries().size());
    auto keyword = [&](const std::string& name) -> const Value* {
      const Value* found = nullptr;
      for (size_t k = 0; k < used.size(); ++k) {
        if (kwargs.entries()[k].first != name) continue;
        if (found) fail_call("the keyword ", quoted(name, 60), " is given twice");
        used[k] = true;
        found = &kwargs.entries()[k].second;
      }
      return found;
    };
    if (args.size() > positional.children.size())
      fail_call("expected ", positional.children.size(), " positional arguments", wanted(), ", got ", args.size());
    for (size_t i = 0; i < positional.children.size(); ++i) {
      bool named = i < names.size();
      std::string path = named ? at_key("inputs", names[i]) : tenon::text("inputs[", i, "]");
      const Value* by_name = named ? keyword(names[i]) : nullptr;
      if (i < args.size() && by_name) fail_call(path, " is given twice, by position and by keyword");
      if (const Value* given = i < args.size() ? &args[i] : by_name) add(positional.children[i], *given, path);
      else leave_out(positional.children[i], path, named ? names[i] : "");
    }
    for (size_t i = 0; i < keywords.children.size(); ++i) {
      std::string name = plain_key(keywords.keys.at(i)), path = at_key("inputs", name);
      if (const Value* given = keyword(name)) add(keywords.children[i], *given, path);
      else leave_out(keywords.children[i], path, name);
    }
    for (size_t k = 0; k < used.size(); ++k)
      if (!used[k]) fail_call("the program takes no argument ", quoted(kwargs.entries()[k].first, 60), wanted());
    return std::move(out_);
  }

 private:
  std::string wanted() const {
    return takes_.names.empty() ? std::string() : tenon::text(" (", tenon::join(takes_.names, ", "), ")");
  }

  void leave_out(const Tree& tree, const std::string& path, const std::string& name) {
    const Takes::Leaf* leaf =
        tree.is_leaf() && out_.leaves.size() < takes_.leaves.size() ? &takes_.leaves[out_.leaves.size()] : nullptr;
    bool cotangent = leaf && tenon::starts_with(leaf->name, "tangent_output_");
    bool constant = leaf && leaf->kind == Takes::Leaf::Kind::constant && leaf->none;
    if (!cotangent && !constant)
      fail_call(path, " is missing", name.empty() ? "" : "; give it by position or as a keyword", wanted());
    out_.absent_are_ones = out_.absent_are_ones || cotangent;
    out_.leaves.emplace_back();
  }

  void add(const Tree& tree, const Value& value, const std::string& path) {
    if (tree.is_leaf()) return add_leaf(value, path);
    if (is_dictionary(tree)) {
      std::vector<std::string> keys;
      for (const std::string& key : tree.keys) keys.push_back(plain_key(key));
      auto expected = [&] {
        return tenon::text(path, ": expected a dictionary with the keys ", tenon::join(keys, ", "));
      };
      if (value.kind() != Value::Kind::dictionary) fail_call(expected(), ", got ", describe(value));
      for (const std::string& key : value.keys())
        if (std::find(keys.begin(), keys.end(), key) == keys.end())
          fail_call(expected(), ", got also ", quoted(key, 60));
      for (const std::string& key : keys)
        if (!value.contains(key)) fail_call(expected(), ", and ", quoted(key, 60), " is missing");
      for (size_t i = 0; i < keys.size(); ++i) add(tree.children[i], value[keys[i]], at_key(path, keys[i]));
      return;
    }
    // As PyTorch, which takes no tuple for a list; whatever else a program has as a node is a tuple to C++.
    bool list = is_list(tree);
    if (value.kind() != (list ? Value::Kind::list : Value::Kind::tuple) || value.size() != tree.children.size())
      fail_call(path, ": expected a ", list ? "list" : "tuple", " of ", tree.children.size(), ", got ", describe(value),
                value.is_sequence() && value.size() == tree.children.size()
                    ? (list ? "; give a std::vector or Value::list" : "; give a std::tuple, a struct or Value::tuple")
                    : "");
    for (size_t i = 0; i < tree.children.size(); ++i) add(tree.children[i], value[i], tenon::text(path, "[", i, "]"));
  }

  void add_leaf(const Value& value, const std::string& path) {
    tenon::expect(out_.leaves.size() < takes_.leaves.size(), "the tree has more leaves than the program has inputs");
    const Takes::Leaf& leaf = takes_.leaves[out_.leaves.size()];
    bool container = value.is_sequence() || value.kind() == Value::Kind::dictionary;
    if (container || (leaf.kind == Takes::Leaf::Kind::tensor && !fits(leaf.meta, value)))
      fail_call(path, ": expected ", expected(leaf), ", got ", describe(value));
    out_.leaves.push_back(to_call_arg(value));
  }

  static std::string expected(const Takes::Leaf& leaf) {
    switch (leaf.kind) {
      case Takes::Leaf::Kind::tensor: return tenon::text(leaf.meta);
      case Takes::Leaf::Kind::number: return "a number";
      case Takes::Leaf::Kind::constant: return "a constant";
    }
    tenon::unreachable();
  }

  // Dtype, rank and fixed sizes; what symbols must equal, and their ranges, the session checks.
  static bool fits(const tenon::TensorMeta& wanted, const Value& value) {
    if (value.kind() != Value::Kind::tensor) return false;
    const tenon::Tensor& given = Access::unwrap(Access::tensor(value));
    if (given.dtype() != wanted.dtype || given.rank() != wanted.rank()) return false;
    for (size_t d = 0; d < wanted.rank(); ++d)
      if (wanted.sizes[d].is_int() && wanted.sizes[d] != given.sizes()[d]) return false;
    return true;
  }

  const Takes& takes_;
  Arguments out_;
};

Value to_value(const tenon::CallArg& leaf) {
  if (auto* t = leaf.get<tenon::Tensor>()) return Access::wrap(*t);
  if (auto* b = leaf.get<bool>()) return *b;
  if (auto* i = leaf.get<tenon::SymInt>()) return i->as_int();
  if (auto* d = leaf.get<double>()) return *d;
  if (auto* s = leaf.get<std::string>()) return *s;
  tenon::require(leaf.is_none(), "a result of this type has no C++ value here; it is a constant of the program");
  return {};
}

Value unflatten_from(const Tree& tree, const std::vector<tenon::CallArg>& leaves, size_t& next) {
  if (tree.is_leaf()) {
    tenon::expect(next < leaves.size(), "fewer results than leaves of their tree");
    return to_value(leaves[next++]);
  }
  std::vector<Value> items;
  for (const Tree& child : tree.children) items.push_back(unflatten_from(child, leaves, next));
  if (is_list(tree)) return Value::list(std::move(items));
  if (!is_dictionary(tree)) return Value::tuple(std::move(items));
  std::vector<std::pair<std::string, Value>> entries;
  for (size_t i = 0; i < items.size(); ++i) entries.emplace_back(plain_key(tree.keys[i]), std::move(items[i]));
  return Value::dictionary(std::move(entries));
}

}  // namespace

tenon::CallArg to_call_arg(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none: return {};
    case Value::Kind::tensor: return Access::unwrap(Access::tensor(value));
    case Value::Kind::truth: return Access::integer(value) != 0;
    case Value::Kind::integer: return Access::integer(value);
    case Value::Kind::real: return Access::real(value);
    case Value::Kind::string: return Access::text(value);
    case Value::Kind::list:
    case Value::Kind::tuple:
    case Value::Kind::dictionary: break;
  }
  tenon::unreachable();
}

Takes takes(const tenon::ExportedProgram& program) {
  Takes out;
  out.tree = program.in_tree();
  if (auto& names = program.module_calls[0].signature->forward_arg_names) out.names = *names;
  for (const tenon::InputSpec& spec : program.signature.inputs) {
    if (spec.kind != tenon::InputKind::user_input) continue;
    Takes::Leaf leaf;
    leaf.name = spec.name;
    if (const tenon::Value* value = spec.arg.get<tenon::Value>()) {
      const tenon::ValueInfo& info = program.graph->info(*value);
      if (info.type == tenon::ValueType::tensor) leaf.meta = info.meta;
      else leaf.kind = Takes::Leaf::Kind::number;
    } else {
      leaf.kind = Takes::Leaf::Kind::constant;
      leaf.none = spec.arg.is_none();
    }
    out.leaves.push_back(std::move(leaf));
  }
  return out;
}

Takes takes(const tenon::artifact::CallSignature& signature) {
  Takes out;
  out.tree = signature.in;
  out.names = signature.parameters;
  for (size_t i = 0; i < signature.names.size(); ++i)
    out.leaves.push_back({signature.names[i], Takes::Leaf::Kind::constant, {}, signature.constants[i].is_none()});
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    Takes::Leaf& leaf = out.leaves[signature.leaves[i]];
    bool tensor = signature.inputs[i].type == tenon::loop::Input::Type::tensor;
    leaf.kind = tensor ? Takes::Leaf::Kind::tensor : Takes::Leaf::Kind::number;
    leaf.meta = signature.inputs[i].meta;
  }
  return out;
}

Arguments flatten(const Takes& takes, const std::vector<Value>& args, const Kwargs& kwargs) {
  return Flattening(takes).run(args, kwargs);
}

Value unflatten(const Tree& tree, const std::vector<tenon::CallArg>& leaves) {
  size_t next = 0;
  return unflatten_from(tree, leaves, next);
}

}  // namespace tenon::v0::detail

#include "tenon/export/serde/tree_spec.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "tenon/io/json.h"

namespace tenon {
namespace {

// A Tree keeps a context as JSON text. Default contexts are JSON inside a JSON string, "[\"a\"]"; a namedtuple has a
// plain string, a defaultdict an object.
void append_json(std::string& out, Json value) {
  switch (value.kind()) {
    case JsonKind::null: out += "null"; return;
    case JsonKind::boolean: out += value.as_bool() ? "true" : "false"; return;
    case JsonKind::integer: append_text(out, value.as_int()); return;
    case JsonKind::real: append_text(out, value.as_double()); return;
    case JsonKind::string: append_json_string(out, value.as_string()); return;
    case JsonKind::array: {
      out += '[';
      bool first = true;
      for (Json item : value.items()) {
        if (!first) out += ", ";
        first = false;
        append_json(out, item);
      }
      out += ']';
      return;
    }
    case JsonKind::object: {
      out += '{';
      bool first = true;
      for (JsonMember member : value.members()) {
        if (!first) out += ", ";
        first = false;
        append_json_string(out, member.key);
        out += ": ";
        append_json(out, member.value);
      }
      out += '}';
      return;
    }
  }
  unreachable();
}

bool is_dict(std::string_view type) {
  return type == "builtins.dict" || type == "collections.OrderedDict" ||
         type == "torch.fx.immutable_collections.immutable_dict";
}

// Names are never looked up, but convert passes them on to PyTorch. Those of containers, and of classes that users
// register: a module and the names in it. Of Python's own modules only the containers are registered.
bool is_type_name(std::string_view type) {
  for (std::string_view known :
       {"builtins.tuple", "builtins.list", "builtins.dict", "collections.OrderedDict", "collections.defaultdict",
        "collections.deque", "collections.namedtuple", "torch.fx.immutable_collections.immutable_list",
        "torch.fx.immutable_collections.immutable_dict"})
    if (type == known) return true;
  constexpr size_t longest = 500;
  if (type.size() > longest) return false;
  std::vector<std::string> parts = split(type, '.');
  for (std::string_view own :
       {"builtins", "collections", "ctypes", "functools", "importlib", "io", "nt", "operator", "_operator", "os",
        "pickle", "posix", "runpy", "shutil", "socket", "subprocess", "sys", "types"})
    if (parts[0] == own) return false;
  for (const std::string& part : parts) {
    bool good = !part.empty() && !(part[0] >= '0' && part[0] <= '9');
    for (char c : part)
      good = good && (c == '_' || static_cast<unsigned char>(c) >= 0x80 || std::isalnum(static_cast<unsigned char>(c)));
    if (!good && part != "<locals>") return false;
  }
  return true;
}

// A key as a path shows it: 'a' for text, 3 for a number, Class.member for an enum.
std::string key_text(Json key) {
  if (key.is_string()) return "'" + std::string(key.as_string()) + "'";
  if (key.is_object())
    if (auto name = key.find("name"); name && name->is_string()) return std::string(name->as_string());
  std::string out;
  append_json(out, key);
  return out;
}

void read_keys(Tree& tree, Json keys) {
  for (Json key : keys.items()) tree.keys.push_back(key_text(key));
  keys.require(tree.keys.size() == tree.children.size(), "expected one key for each of ", tree.children.size(),
               " children, found ", tree.keys.size());
}

Tree read(Json spec) {
  Tree tree;
  Json children = spec.at("children_spec");
  Json type = spec.at("type");
  Json context = spec.at("context");
  if (type.is_null()) {
    spec.require(children.size() == 0, "expected a leaf without children, found ", children.size());
    return tree;
  }
  tree.type = type.as_string();
  type.require(is_type_name(tree.type), "expected the name of a container or of a registered class, found ",
               quoted(tree.type));
  for (Json child : children.items()) tree.children.push_back(read(child));
  append_json(tree.context, context);
  if (is_dict(tree.type)) {
    JsonDocument document(context.as_string(), context);
    read_keys(tree, document.root());
  } else if (tree.type == "collections.defaultdict" && context.is_object()) {
    if (auto keys = context.find("dict_context")) {
      if (keys->is_string()) {
        JsonDocument document(keys->as_string(), *keys);
        read_keys(tree, document.root());
      } else {
        read_keys(tree, *keys);
      }
    }
  }
  return tree;
}

// For trees made here, which have keys and no context.
std::string default_context(const Tree& tree) {
  if (!is_dict(tree.type)) return "null";
  std::string out = "[";
  for (const std::string& key : tree.keys) {
    if (out.size() > 1) out += ", ";
    if (key.size() >= 2 && key.front() == '\'')
      append_json_string(out, std::string_view(key).substr(1, key.size() - 2));
    else out += key;
  }
  return out + "]";
}

void write(std::string& out, const Tree& tree) {
  if (tree.is_leaf()) {
    out += R"({"type": null, "context": null, "children_spec": []})";
    return;
  }
  out += "{\"type\": ";
  append_json_string(out, tree.type);
  out += ", \"context\": ";
  if (!tree.context.empty()) out += tree.context;
  else append_json_string(out, default_context(tree));
  out += ", \"children_spec\": [";
  for (size_t i = 0; i < tree.children.size(); ++i) {
    if (i) out += ", ";
    write(out, tree.children[i]);
  }
  out += "]}";
}

}  // namespace

namespace {
Tree read_spec(Json root) {
  root.require(root.is_array() && root.size() == 2, "expected a list of a version and a tree");
  root[0].require(root[0].as_int() == 1, "expected version 1 of the tree specification, found ", root[0].as_int());
  return read(root[1]);
}
}  // namespace

Tree parse_tree_spec(std::string_view json, std::string subject) {
  JsonDocument document(json, std::move(subject));
  return read_spec(document.root());
}

Tree parse_tree_spec(Json string) {
  JsonDocument document(string.as_string(), string);
  return read_spec(document.root());
}

std::string to_tree_spec(const Tree& tree) {
  std::string out = "[1, ";
  write(out, tree);
  return out + "]";
}

}  // namespace tenon

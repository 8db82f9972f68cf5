#include <vector>

#include "tenon/base/error.h"
#include "tenon/io/json.h"
#include "tests/hostile/generator.h"

namespace tenon {
namespace {

/// A JSON value that can be changed.
struct Tree {
  JsonKind kind = JsonKind::null;
  bool flag = false;
  int64_t integer = 0;
  double real = 0;
  std::string string;
  std::vector<std::string> keys;  // of an object
  std::vector<Tree> items;
};

Tree copied(Json json) {
  Tree out{.kind = json.kind()};
  switch (json.kind()) {
    case JsonKind::null: break;
    case JsonKind::boolean: out.flag = json.as_bool(); break;
    case JsonKind::integer: out.integer = json.as_int(); break;
    case JsonKind::real: out.real = json.as_double(); break;
    case JsonKind::string: out.string = json.as_string(); break;
    case JsonKind::array:
      for (Json item : json.items()) out.items.push_back(copied(item));
      break;
    case JsonKind::object:
      for (JsonMember member : json.members()) {
        out.keys.emplace_back(member.key);
        out.items.push_back(copied(member.value));
      }
      break;
  }
  return out;
}

void write(JsonWriter& out, const Tree& tree) {
  switch (tree.kind) {
    case JsonKind::null: out.null(); break;
    case JsonKind::boolean: out.boolean(tree.flag); break;
    case JsonKind::integer: out.integer(tree.integer); break;
    case JsonKind::real: out.real(tree.real); break;
    case JsonKind::string: out.string(tree.string); break;
    case JsonKind::array:
      out.begin_array();
      for (const Tree& item : tree.items) write(out, item);
      out.end_array();
      break;
    case JsonKind::object:
      out.begin_object();
      for (size_t i = 0; i < tree.items.size(); ++i) {
        out.key(tree.keys[i]);
        write(out, tree.items[i]);
      }
      out.end_object();
      break;
  }
}

void collect(Tree& tree, std::vector<Tree*>& all) {
  all.push_back(&tree);
  for (Tree& item : tree.items) collect(item, all);
}

void change(Tree& root, Choices& choices) {
  std::vector<Tree*> all;
  collect(root, all);
  size_t which = choices.byte() | static_cast<size_t>(choices.byte()) << 8;
  Tree& at = *all[which % all.size()];
  static constexpr int64_t numbers[] = {
      0, 1, 2, 3, -1, -2, 7, 64, 255, 1 << 20, INT64_MAX, INT64_MIN, int64_t{1} << 31, int64_t{1} << 44};
  auto other = [&]() -> const Tree& {
    return *all[(choices.byte() | static_cast<size_t>(choices.byte()) << 8) % all.size()];
  };
  switch (choices.below(8)) {
    case 0: at = Tree{.kind = JsonKind::integer, .integer = choices.of(std::span<const int64_t>(numbers))}; break;
    case 1:  // the same kind, taken from elsewhere
      for (int attempt = 0; attempt < 20; ++attempt)
        if (const Tree& from = other(); from.kind == at.kind) {
          Tree copy = from;
          at = std::move(copy);
          break;
        }
      break;
    case 2: {
      Tree copy = other();
      at = std::move(copy);
      break;
    }
    case 3:
      if (!at.items.empty()) {
        size_t i = choices.below(at.items.size());
        at.items.erase(at.items.begin() + static_cast<ptrdiff_t>(i));
        if (at.kind == JsonKind::object) at.keys.erase(at.keys.begin() + static_cast<ptrdiff_t>(i));
      }
      break;
    case 4:
      if (at.kind == JsonKind::array && !at.items.empty()) {
        Tree copy = at.items[choices.below(at.items.size())];
        at.items.push_back(std::move(copy));
      }
      break;
    case 5:
      if (at.items.size() > 1)
        std::swap(at.items[choices.below(at.items.size())], at.items[choices.below(at.items.size())]);
      break;
    case 6:
      if (at.kind == JsonKind::integer)
        at.integer = static_cast<int64_t>(static_cast<uint64_t>(at.integer) + choices.byte() - 128);
      else if (at.kind == JsonKind::boolean) at.flag = !at.flag;
      else if (at.kind == JsonKind::object && !at.keys.empty()) {
        static constexpr std::string_view keys[] = {
            "as_none",  "as_int",   "as_tensor",     "as_tensors", "as_sym_int",         "as_expr",
            "as_float", "as_bool",  "as_ints",       "as_string",  "as_optional_tensor", "as_optional_tensors",
            "as_name",  "as_graph", "as_scalar_type"};
        at.keys[choices.below(at.keys.size())] = choices.of(std::span<const std::string_view>(keys));
      } else if (at.kind == JsonKind::string) at.string += static_cast<char>(choices.byte() & 0x7f);
      break;
    default: at = Tree{}; break;
  }
}

}  // namespace

std::string mutated_json(std::string_view json, Choices& choices) {
  try {
    JsonDocument document(json, "seed");
    Tree tree = copied(document.root());
    for (size_t i = 1 + choices.below(4); i > 0; --i) change(tree, choices);
    JsonWriter out;
    write(out, tree);
    return out.take();
  } catch (const Error&) { return std::string(json); }
}

}  // namespace tenon

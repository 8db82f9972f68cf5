#include "tenon/export/serde/samples.h"

#include <map>

#include "tenon/export/serde/torch_save.h"
#include "tenon/io/json.h"

namespace tenon::serde {
namespace {

class SampleReader {
 public:
  explicit SampleReader(TorchSave& file) : file_(file) {}

  void walk(const Tree& tree, PickleValue value) {
    if (tree.is_leaf()) {
      leaves.push_back(read_leaf(value));
      return;
    }
    value = unwrapped(value);
    if (!tree.keys.empty() || tree.type == "builtins.dict" || tree.type == "collections.OrderedDict")
      walk_keys(tree, value);
    else if (auto fields = dataclass_fields(tree)) walk_fields(tree, fields->given, value);
    else walk_items(tree, value);
  }

  std::vector<CallArg> leaves;
  bool opaque = false;  // there is an object of a class that only the user knows

 private:
  // torch.Size((2, 3)) is a tuple.
  static PickleValue unwrapped(PickleValue value) {
    if (value.is_call("torch", "Size") && value.args().size() == 1) return value.args()[0];
    return value;
  }

  static std::string key_text(PickleValue key) {
    if (key.is(PickleKind::string)) return text("'", key.as_string(), "'");
    if (key.is(PickleKind::integer)) return text(key.as_int());
    if (key.is(PickleKind::boolean)) return text(key.as_bool());
    return key.describe();
  }

  void walk_keys(const Tree& tree, PickleValue value) {
    std::map<std::string, PickleValue> found;
    auto add = [&](PickleValue key, PickleValue item) { found.emplace(key_text(key), item); };
    bool made = value.is_call("collections", "OrderedDict") || value.is_call("collections", "defaultdict") ||
                value.is_call("torch.fx.immutable_collections", "immutable_dict");
    value.require(value.is(PickleKind::dict) || made, "expected a dict (", tree.type, ") in the sample inputs, found ",
                  value.describe());
    if (value.is_call("collections", "OrderedDict") && value.args().size() == 1) {
      PickleValue pairs = value.args()[0];
      for (size_t i = 0; i < pairs.size(); ++i)
        if (pairs[i].size() == 2) add(pairs[i][0], pairs[i][1]);
    }
    if (value.is(PickleKind::dict) || value.has_pairs())
      for (size_t i = 0; i < value.size(); ++i) add(value.pair(i).key, value.pair(i).value);
    value.require(found.size() == tree.children.size(), "expected a dict of ", tree.children.size(),
                  " keys in the sample inputs as in_spec says, found one of ", found.size());
    for (size_t i = 0; i < tree.children.size(); ++i) {
      auto item = found.find(tree.keys[i]);
      value.require(item != found.end(), "the sample inputs have no key ", quoted(tree.keys[i]), ", which in_spec has");
      walk(tree.children[i], item->second);
    }
  }

  void walk_fields(const Tree& tree, const std::vector<std::string>& names, PickleValue value) {
    value.require(value.is(PickleKind::object) && value.state() && value.state()->is(PickleKind::dict),
                  "expected an object of ", quoted(tree.type), " in the sample inputs, found ", value.describe());
    PickleValue state = *value.state();
    std::map<std::string_view, PickleValue> fields;
    for (size_t i = 0; i < state.size(); ++i)
      if (auto [key, item] = state.pair(i); key.is(PickleKind::string)) fields.emplace(key.as_string(), item);
    for (size_t n = 0; n < names.size(); ++n) {
      auto found = fields.find(names[n]);
      if (found == fields.end())
        value.fail("the sample inputs hold an object of ", quoted(tree.type), " without the field ", quoted(names[n]));
      walk(tree.children[n], found->second);
    }
  }

  void walk_items(const Tree& tree, PickleValue value) {
    PickleValue items = value;
    bool good = false;
    if (tree.type == "builtins.tuple") good = value.is(PickleKind::tuple);
    else if (tree.type == "builtins.list") good = value.is(PickleKind::list);
    else if (tree.type == "collections.deque") good = value.is_call("collections", "deque");
    else if (tree.type == "collections.namedtuple") {
      good = value.is(PickleKind::object);
      if (good) items = value.args();
    } else if (starts_with(tree.type, "torch.fx.immutable_collections")) {
      good = value.is(PickleKind::call) || value.is(PickleKind::object) || value.is(PickleKind::list);
    } else if (tree.type == "torch.Size") {
      good = value.is(PickleKind::tuple);
    }
    opaque = !good && value.is(PickleKind::object) && !starts_with(tree.type, "builtins.") &&
             !starts_with(tree.type, "collections.") && !starts_with(tree.type, "torch.");
    value.require(good, "expected ", quoted(tree.type), " in the sample inputs as in_spec says, found ",
                  value.describe(), "; Tenon cannot read objects of user classes");
    if (value.is_call("collections", "deque") && items.size() == 0 && value.args().size() >= 1) items = value.args()[0];
    value.require(items.size() == tree.children.size(), "expected ", tree.children.size(), " items (", tree.type,
                  ") in the sample inputs as in_spec says, found ", items.size());
    for (size_t i = 0; i < tree.children.size(); ++i) walk(tree.children[i], items[i]);
  }

  CallArg read_leaf(PickleValue value) {
    switch (value.kind()) {
      case PickleKind::none: return {};
      case PickleKind::boolean: return value.as_bool();
      case PickleKind::integer: return value.as_int();
      case PickleKind::real: return value.as_real();
      case PickleKind::string: return std::string(value.as_string());
      case PickleKind::call: return file_.tensor(value).tensor;
      default:
        value.fail("expected a tensor, a number, a string or None in the sample inputs, found ", value.describe());
    }
  }

  TorchSave& file_;
};

}  // namespace

// Dataclasses have the context "[[names of fields], [names of fields that are None]]".
std::optional<DataclassFields> dataclass_fields(const Tree& tree) {
  if (starts_with(tree.type, "builtins.") || starts_with(tree.type, "collections.")) return std::nullopt;
  try {
    JsonDocument outer(tree.context, "context");
    if (!outer.root().is_string()) return std::nullopt;
    JsonDocument inner(outer.root().as_string(), "context");
    Json root = inner.root();
    if (!root.is_array() || root.size() != 2 || !root[0].is_array() || root[0].size() != tree.children.size())
      return std::nullopt;
    DataclassFields fields;
    for (Json name : root[0].items()) fields.given.emplace_back(name.as_string());
    if (root[1].is_array())
      for (Json name : root[1].items()) fields.none.emplace_back(name.as_string());
    return fields;
  } catch (const Error&) { return std::nullopt; }
}

namespace {

std::optional<SampleInputs> read_samples(const std::shared_ptr<const Archive>& archive, const Tree& tree) {
  std::string name = archive->samples_entry();
  const ZipEntry* entry = archive->find(name);
  if (!entry || entry->size == 0) return std::nullopt;
  archive->zip().check(*entry);
  TorchSave file(archive, name, "the sample inputs");
  SampleReader reader(file);
  try {
    reader.walk(tree, file.root());
  } catch (const Error& error) {
    if (reader.opaque) throw OpaqueSamples(error.what(), {tree, {}, archive->zip().bytes(*entry), archive});
    throw;
  }
  file.check()();
  return SampleInputs{tree, std::move(reader.leaves), archive->zip().bytes(*entry), archive};
}

}  // namespace

std::function<std::optional<SampleInputs>()> sample_reader(std::shared_ptr<const Archive> archive,
                                                           const ExportedProgram& program) {
  return [archive = std::move(archive), tree = program.in_tree()] { return read_samples(archive, tree); };
}

}  // namespace tenon::serde

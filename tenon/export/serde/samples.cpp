#include "tenon/export/serde/samples.h"

#include <cstring>
#include <map>

#include "tenon/io/json.h"
#include "tenon/io/pickle.h"

namespace tenon::serde {
namespace {

// The inner archive, kept as long as a tensor lies in it.
struct SampleArchive {
  std::shared_ptr<const Archive> outer;
  ZipArchive zip;
  std::string root;
};

struct StorageClass {
  std::string_view name;
  DType dtype;
};
constexpr StorageClass storage_classes[] = {
    {"DoubleStorage", DType::f64},    {"FloatStorage", DType::f32},        {"HalfStorage", DType::f16},
    {"BFloat16Storage", DType::bf16}, {"LongStorage", DType::i64},         {"IntStorage", DType::i32},
    {"ShortStorage", DType::i16},     {"CharStorage", DType::i8},          {"ByteStorage", DType::u8},
    {"BoolStorage", DType::boolean},  {"ComplexFloatStorage", DType::c64}, {"ComplexDoubleStorage", DType::c128},
};

Device device_at(std::string_view location) {
  size_t colon = location.find(':');
  Device device{.type = std::string(location.substr(0, colon))};
  if (colon != std::string_view::npos && colon + 1 < location.size()) {
    char digit = location[colon + 1];
    device.index = digit >= '0' && digit <= '9' ? digit - '0' : 0;
  }
  return device;
}

class SampleReader {
 public:
  explicit SampleReader(std::shared_ptr<const SampleArchive> archive) : archive_(std::move(archive)) {}

  void walk(const Tree& tree, PickleValue value) {
    if (tree.is_leaf()) {
      leaves.push_back(read_leaf(value));
      return;
    }
    value = unwrapped(value);
    if (!tree.keys.empty() || tree.type == "builtins.dict" || tree.type == "collections.OrderedDict")
      walk_keys(tree, value);
    else if (auto fields = field_names(tree)) walk_fields(tree, *fields, value);
    else walk_items(tree, value);
  }

  std::vector<CallArg> leaves;

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

  // Dataclasses have the context "[[names of fields], [names of fields that are None]]".
  static std::optional<std::vector<std::string>> field_names(const Tree& tree) {
    if (starts_with(tree.type, "builtins.") || starts_with(tree.type, "collections.")) return std::nullopt;
    try {
      JsonDocument outer(tree.context, "context");
      if (!outer.root().is_string()) return std::nullopt;
      JsonDocument inner(outer.root().as_string(), "context");
      Json root = inner.root();
      if (!root.is_array() || root.size() != 2 || !root[0].is_array() || root[0].size() != tree.children.size())
        return std::nullopt;
      std::vector<std::string> names;
      for (Json name : root[0].items()) names.emplace_back(name.as_string());
      return names;
    } catch (const Error&) { return std::nullopt; }
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
      case PickleKind::call: return read_tensor(value.callee(), value.args());
      default:
        value.fail("expected a tensor, a number, a string or None in the sample inputs, found ", value.describe());
    }
  }

  Tensor read_tensor(PickleValue function, PickleValue args) {
    auto is = [&](std::string_view name, size_t least) {
      return function.is_global("torch._utils", name) && args.size() >= least;
    };
    if (is("_rebuild_tensor_v2", 6)) {
      check_flags(args, 6);
      return rebuild(args, std::nullopt);
    }
    if (is("_rebuild_tensor_v3", 7)) {
      check_flags(args, 7);
      PickleValue dtype = args[6];
      std::optional<DType> known;
      if (dtype.is(PickleKind::global) && dtype.module() == "torch") known = dtype_of(dtype.name());
      dtype.require(known.has_value(), "expected a dtype, found ", dtype.describe());
      return rebuild(args, known);
    }
    if (is("_rebuild_parameter", 2) || is("_rebuild_parameter_with_state", 2)) {
      args[0].require(args[0].is(PickleKind::call), "expected a tensor, found ", args[0].describe());
      Tensor t = read_tensor(args[0].callee(), args[0].args());
      TensorMeta meta = t.meta();
      meta.requires_grad = args[1].as_bool();
      return Tensor(std::move(meta), t.storage());
    }
    if (function.is_global("torch._tensor", "_rebuild_from_type_v2") && args.size() == 4) {
      bool plain = args[1].is_global("torch", "Tensor") || args[1].is_global("torch.nn.parameter", "Parameter");
      args[1].require(plain, "expected a plain tensor, found ", args[1].describe());
      args[0].require(!args[0].is_global("torch._tensor", "_rebuild_from_type_v2"), "a tensor is wrapped twice");
      return read_tensor(args[0], args[2]);
    }
    function.fail("expected a tensor in the sample inputs, found a call of ", function.describe());
  }

  static void check_flags(PickleValue args, size_t at) {
    if (args.size() <= at || args[at].is_none()) return;
    PickleValue flags = args[at];
    flags.require(flags.is(PickleKind::dict), "expected the flags of a tensor, found ", flags.describe());
    for (size_t i = 0; i < flags.size(); ++i) {
      auto [key, value] = flags.pair(i);
      bool set = !value.is(PickleKind::boolean) || value.as_bool();
      flags.require(!set, "a tensor of the sample inputs is a ", key_text(key), " view, which Tenon does not support");
    }
  }

  Sizes read_sizes(PickleValue list) {
    list = unwrapped(list);
    list.require(list.is(PickleKind::tuple) || list.is(PickleKind::list), "expected sizes or strides, found ",
                 list.describe());
    Sizes out;
    for (size_t i = 0; i < list.size(); ++i) out.push_back(list[i].as_int());
    return out;
  }

  Tensor rebuild(PickleValue args, std::optional<DType> dtype) {
    PickleValue reference = args[0];
    reference.require(
        reference.is(PickleKind::persistent) && reference.id().is(PickleKind::tuple) && reference.id().size() == 5,
        "expected the storage of a tensor, found ", reference.describe());
    PickleValue id = reference.id();
    PickleValue type = id[1];
    std::optional<DType> stored;
    bool untyped = type.is_global("torch.storage", "UntypedStorage") || type.is_global("torch", "UntypedStorage");
    if (type.is(PickleKind::global) && type.module() == "torch")
      for (const StorageClass& c : storage_classes)
        if (c.name == type.name()) stored = c.dtype;
    type.require(stored || untyped, "expected a class of storage, found ", type.describe());
    if (!dtype) dtype = stored;
    type.require(dtype.has_value(), "a tensor without a dtype");
    TensorMeta meta{.dtype = *dtype};
    meta.sizes = read_sizes(args[2]);
    meta.strides = read_sizes(args[3]);
    meta.offset = args[1].as_int();
    meta.requires_grad = args[4].as_bool();
    meta.device = device_at(id[3].as_string());
    args.require(meta.rank() <= 64 && meta.strides.size() == meta.rank(), "a tensor with ", meta.rank(), " sizes and ",
                 meta.strides.size(), " strides");
    std::shared_ptr<Storage> storage = storage_of(id[2]);
    require_fits(meta, storage->size(), text(archive_->zip.subject(), ": a sample input"));
    return Tensor(std::move(meta), std::move(storage));
  }

  std::shared_ptr<Storage> storage_of(PickleValue key) {
    auto& storage = storages_[std::string(key.as_string())];
    if (storage) return storage;
    const ZipEntry* entry = archive_->zip.find(text(archive_->root, "data/", key.as_string()));
    key.require(entry, "the storage ", quoted(key.as_string()), " of a tensor is missing");
    std::span<const std::byte> bytes = archive_->zip.bytes(*entry);
    if (reinterpret_cast<uintptr_t>(bytes.data()) % 16 == 0) {
      storage = std::make_shared<Storage>(bytes, archive_);
    } else {
      archive_->outer->budget().take_bytes(bytes.size(), "sample inputs");
      storage = std::make_shared<Storage>(bytes.size());
      if (!bytes.empty()) std::memcpy(storage->mutable_data(), bytes.data(), bytes.size());
    }
    return storage;
  }

  std::shared_ptr<const SampleArchive> archive_;
  std::map<std::string, std::shared_ptr<Storage>> storages_;
};

std::optional<SampleInputs> read_samples(const std::shared_ptr<const Archive>& archive, const Tree& tree) {
  std::string name = text("data/sample_inputs/", archive->model(), ".pt");
  const ZipEntry* entry = archive->find(name);
  if (!entry || entry->size == 0) return std::nullopt;
  std::string subject = text(archive->path(), ": ", name);
  auto inner = std::make_shared<SampleArchive>(
      SampleArchive{archive, ZipArchive(archive->zip().bytes(*entry), subject, {.budget = &archive->budget()}), ""});
  require(!inner->zip.entries().empty(), subject, ": the archive is empty");
  std::string_view first = inner->zip.entries()[0].name;
  require(first.find('/') != std::string_view::npos, subject, ": expected a file written by torch.save");
  inner->root = first.substr(0, first.find('/') + 1);
  const ZipEntry* order = inner->zip.find(inner->root + "byteorder");
  require(!order || trim(inner->zip.content(*order)) == "little", subject,
          ": expected a file of a little-endian machine");
  const ZipEntry* pickle = inner->zip.find(inner->root + "data.pkl");
  require(pickle, subject, ": the entry data.pkl is missing");
  PickleDocument document(inner->zip.bytes(*pickle), subject, {.budget = &archive->budget()});
  SampleReader reader(inner);
  reader.walk(tree, document.root());
  return SampleInputs{tree, std::move(reader.leaves)};
}

}  // namespace

std::function<std::optional<SampleInputs>()> sample_reader(std::shared_ptr<const Archive> archive,
                                                           const ExportedProgram& program) {
  return [archive = std::move(archive), tree = program.in_tree()] { return read_samples(archive, tree); };
}

}  // namespace tenon::serde

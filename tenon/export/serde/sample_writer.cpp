#include <algorithm>
#include <map>

#include "tenon/export/serde/samples.h"
#include "tenon/io/pickle.h"
#include "tenon/io/zip.h"

namespace tenon::serde {
namespace {

// Dtypes with a class of storage; the others are told by name.
std::string_view storage_class(DType dtype) {
  switch (dtype) {
    case DType::f64: return "DoubleStorage";
    case DType::f32: return "FloatStorage";
    case DType::f16: return "HalfStorage";
    case DType::bf16: return "BFloat16Storage";
    case DType::i64: return "LongStorage";
    case DType::i32: return "IntStorage";
    case DType::i16: return "ShortStorage";
    case DType::i8: return "CharStorage";
    case DType::u8: return "ByteStorage";
    case DType::boolean: return "BoolStorage";
    case DType::c64: return "ComplexFloatStorage";
    case DType::c128: return "ComplexDoubleStorage";
    default: return "";
  }
}

// Whether its types say all there is to write.
bool is_writable(const Tree& tree) {
  bool known = tree.is_leaf() || tree.type == "builtins.tuple" || tree.type == "builtins.list" ||
               tree.type == "builtins.dict" || tree.type == "collections.OrderedDict";
  return known && std::all_of(tree.children.begin(), tree.children.end(), is_writable);
}

/// What a container is in Python, where its tree alone does not say it.
struct SampleClass {
  std::string module, name;      // the class of a namedtuple or a dataclass; what a defaultdict makes, if anything
  std::optional<int64_t> limit;  // of a deque
};

/// Reads the classes of containers, in the order in which a writer meets them. The tree may have more than the file:
/// arguments that were added since.
class ClassReader {
 public:
  void walk(const Tree& tree, PickleValue value) {
    if (tree.is_leaf()) return;
    bool keyed = !tree.keys.empty();
    if (tree.type == "collections.defaultdict") {
      PickleValue args = value.args();
      bool makes = args.size() == 1 && args[0].is(PickleKind::global);
      found.push_back({makes ? std::string(args[0].module()) : "", makes ? std::string(args[0].name()) : "", {}});
    } else if (tree.type == "collections.deque") {
      PickleValue args = value.args();
      bool limited = args.size() == 2 && args[1].is(PickleKind::integer);
      found.push_back({"", "", limited ? std::optional(args[1].as_int()) : std::nullopt});
      if (value.size() == 0 && args.size() >= 1) value = args[0];
    } else if (value.is(PickleKind::object)) {
      found.push_back({std::string(value.callee().module()), std::string(value.callee().name()), {}});
      auto fields = dataclass_fields(tree);
      if (fields && value.state()) return walk_pairs(tree, *value.state(), fields->given);
      value = value.args();
    }
    if (keyed) {
      std::vector<std::string> keys;
      for (const std::string& key : tree.keys)
        keys.push_back(key.size() >= 2 && key.front() == '\'' ? key.substr(1, key.size() - 2) : key);
      return walk_pairs(tree, value, keys);
    }
    for (size_t i = 0; i < tree.children.size() && i < value.size(); ++i) walk(tree.children[i], value[i]);
  }

  std::vector<SampleClass> found;

 private:
  void walk_pairs(const Tree& tree, PickleValue value, const std::vector<std::string>& keys) {
    for (size_t i = 0; i < keys.size(); ++i)
      for (size_t k = 0; k < value.size(); ++k) {
        PickleValue key = value.pair(k).key;
        bool same = key.is(PickleKind::string) ? key.as_string() == keys[i]
                                               : key.is(PickleKind::integer) && text(key.as_int()) == keys[i];
        if (same) walk(tree.children[i], value.pair(k).value);
      }
  }
};

PickleDocument document_of(const SampleInputs& samples) {
  ZipArchive zip(samples.file, "the sample inputs");
  for (const ZipEntry& entry : zip.entries())
    if (ends_with(entry.name, "/data.pkl"))
      return PickleDocument(std::as_bytes(std::span(zip.content(entry))), "the sample inputs");
  fail("the sample inputs hold no data.pkl");
}

std::vector<SampleClass> classes_of(const SampleInputs& samples) {
  if (samples.file.empty()) return {};
  PickleDocument document = document_of(samples);
  ClassReader reader;
  reader.walk(samples.tree, document.root());
  return std::move(reader.found);
}

// Whether objects of its types can be made from their class and what they hold: not those that a user's function packs.
bool is_makeable(const Tree& tree) {
  bool known = tree.is_leaf() || tree.type == "builtins.tuple" || tree.type == "builtins.list" ||
               tree.type == "builtins.dict" || starts_with(tree.type, "collections.") || dataclass_fields(tree);
  return known && std::all_of(tree.children.begin(), tree.children.end(), is_makeable);
}

// Whether the file holds as many keyword arguments as there are: none was added since.
bool is_as_read(const SampleInputs& samples) {
  if (samples.file.empty() || samples.tree.children.size() != 2) return false;
  PickleDocument document = document_of(samples);
  PickleValue root = document.root();
  return root.is(PickleKind::tuple) && root.size() == 2 && root[1].is(PickleKind::dict) &&
         root[1].size() == samples.tree.children[1].children.size();
}

class SampleWriter {
 public:
  explicit SampleWriter(const SampleInputs& samples)
      : samples_(samples), classes_(is_writable(samples.tree) ? std::vector<SampleClass>() : classes_of(samples)) {}

  std::string write() {
    walk(samples_.tree);
    require(leaf_ == samples_.leaves.size(), "the sample inputs hold ", samples_.leaves.size(),
            " leaves for a tree of ", leaf_);
    std::string out;
    ZipWriter zip(&out);
    zip.add("archive/data.pkl", pickle_.take());
    zip.add("archive/.format_version", "1");
    zip.add("archive/.storage_alignment", "64");
    zip.add("archive/byteorder", "little");
    for (size_t i = 0; i < storages_.size(); ++i)
      zip.add(text("archive/data/", i), std::span(storages_[i]->data(), storages_[i]->size()));
    zip.add("archive/version", "3\n");
    zip.commit();
    return out;
  }

 private:
  void walk(const Tree& tree) {
    if (tree.is_leaf()) {
      require(leaf_ < samples_.leaves.size(), "the sample inputs hold too few leaves");
      write_leaf(samples_.leaves[leaf_++]);
    } else if (tree.type == "builtins.tuple") {
      pickle_.begin_tuple();
      for (const Tree& child : tree.children) walk(child);
      pickle_.end_tuple();
    } else if (tree.type == "builtins.list") {
      pickle_.begin_list();
      for (const Tree& child : tree.children) walk(child);
      pickle_.end_list();
    } else if (tree.type == "builtins.dict" || tree.type == "collections.OrderedDict") {
      if (tree.type == "builtins.dict") pickle_.begin_dict();
      else pickle_.begin_ordered_dict();
      for (size_t i = 0; i < tree.children.size(); ++i) {
        write_key(tree.keys.at(i));
        walk(tree.children[i]);
      }
      pickle_.end_dict();
    } else {
      require(class_ < classes_.size(), "sample inputs in a container of type ", quoted(tree.type),
              " cannot be written: its class is not known");
      write_object(tree, classes_[class_++]);
    }
  }

  void write_object(const Tree& tree, const SampleClass& of) {
    auto items = [&] {
      for (const Tree& child : tree.children) walk(child);
    };
    if (tree.type == "collections.defaultdict") {
      pickle_.begin_default_dict(of.module, of.name);
      for (size_t i = 0; i < tree.children.size(); ++i) {
        write_key(tree.keys.at(i));
        walk(tree.children[i]);
      }
      pickle_.end_dict();
    } else if (tree.type == "collections.deque") {
      pickle_.begin_deque(of.limit);
      items();
      pickle_.end_list();
    } else if (auto fields = dataclass_fields(tree)) {
      pickle_.begin_object_with_fields(of.module, of.name);
      for (size_t i = 0; i < tree.children.size(); ++i) {
        pickle_.string(fields->given[i]);
        walk(tree.children[i]);
      }
      for (const std::string& field : fields->none) {
        pickle_.string(field);
        pickle_.none();
      }
      pickle_.end_object_with_fields();
    } else {
      require(tree.type == "collections.namedtuple", "sample inputs in a container of type ", quoted(tree.type),
              " cannot be written yet");
      pickle_.begin_object(of.module, of.name);
      items();
      pickle_.end_object();
    }
  }

  void write_key(const std::string& key) {
    if (key.size() >= 2 && key.front() == '\'') {
      pickle_.string(std::string_view(key).substr(1, key.size() - 2));
      return;
    }
    int64_t number = 0;
    bool digits = !key.empty() && key.size() < 19;
    for (size_t i = key[0] == '-'; digits && i < key.size(); ++i) {
      digits = key[i] >= '0' && key[i] <= '9';
      number = number * 10 + (key[i] - '0');
    }
    require(digits, "the key ", quoted(key), " of the sample inputs cannot be written yet");
    pickle_.integer(key[0] == '-' ? -number : number);
  }

  void write_leaf(const CallArg& leaf) {
    if (leaf.is_none()) pickle_.none();
    else if (auto* b = leaf.get<bool>()) pickle_.boolean(*b);
    else if (auto* i = leaf.get<SymInt>()) pickle_.integer(i->as_int());
    else if (auto* d = leaf.get<double>()) pickle_.real(*d);
    else if (auto* s = leaf.get<std::string>()) pickle_.string(*s);
    else if (auto* t = leaf.get<Tensor>()) write_tensor(*t);
    else fail("a sample input that is neither a tensor nor a number, string or None cannot be written");
  }

  void write_tensor(const Tensor& t) {
    std::vector<int64_t> sizes, strides;
    for (SymInt s : t.sizes()) sizes.push_back(s.as_int());
    for (SymInt s : t.strides()) strides.push_back(s.as_int());
    // One storage under two dtypes cannot be pickled by PyTorch either; there it is written twice.
    auto [known, fresh] = keys_.try_emplace({t.storage().get(), t.dtype()}, text(storages_.size()));
    if (fresh) storages_.push_back(t.storage());
    std::string_view type = storage_class(t.dtype());
    auto bytes = static_cast<int64_t>(t.storage()->size());
    std::string location = text(t.meta().device);
    pickle_.tensor({.storage = type,
                    .dtype = type.empty() ? torch_name(t.dtype()) : std::string_view(),
                    .key = known->second,
                    .location = location,
                    .count = type.empty() ? bytes : bytes / static_cast<int64_t>(item_size(t.dtype())),
                    .offset = t.meta().offset.as_int(),
                    .sizes = sizes,
                    .strides = strides,
                    .requires_grad = t.meta().requires_grad});
  }

  const SampleInputs& samples_;
  std::vector<SampleClass> classes_;
  PickleWriter pickle_;
  size_t leaf_ = 0, class_ = 0;
  std::map<std::pair<const Storage*, DType>, std::string> keys_;
  std::vector<std::shared_ptr<Storage>> storages_;
};

}  // namespace

std::string write_samples(const SampleInputs& samples) {
  if (!is_makeable(samples.tree) && is_as_read(samples))
    return {reinterpret_cast<const char*>(samples.file.data()), samples.file.size()};
  return SampleWriter(samples).write();
}

}  // namespace tenon::serde

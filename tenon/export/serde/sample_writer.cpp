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

class SampleWriter {
 public:
  explicit SampleWriter(const SampleInputs& samples) : samples_(samples) {}

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
      fail("sample inputs in a container of type ", quoted(tree.type), " cannot be written yet");
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
  PickleWriter pickle_;
  size_t leaf_ = 0;
  std::map<std::pair<const Storage*, DType>, std::string> keys_;
  std::vector<std::shared_ptr<Storage>> storages_;
};

// Whether we can write objects of its types: others are of classes that only Python knows.
bool is_writable(const Tree& tree) {
  bool known = tree.is_leaf() || tree.type == "builtins.tuple" || tree.type == "builtins.list" ||
               tree.type == "builtins.dict" || tree.type == "collections.OrderedDict";
  return known && std::all_of(tree.children.begin(), tree.children.end(), is_writable);
}

}  // namespace

std::string write_samples(const SampleInputs& samples) {
  if (!samples.file.empty() && !is_writable(samples.tree))
    return {reinterpret_cast<const char*>(samples.file.data()), samples.file.size()};
  return SampleWriter(samples).write();
}

}  // namespace tenon::serde

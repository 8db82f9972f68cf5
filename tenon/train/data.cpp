#include "tenon/train/data.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>

#include "tenon/io/safetensors.h"
#include "tenon/tensor/half.h"

namespace tenon::train {
namespace {

std::optional<size_t> position(std::string_view key) {
  if (!starts_with(key, "arr_")) return std::nullopt;
  key.remove_prefix(4);
  size_t number = 0;
  auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
  bool plain = error == std::errc() && end == key.data() + key.size();
  return plain ? std::optional(number) : std::nullopt;
}

Tensor tensor_of(const Array& array) {
  TensorMeta meta;
  meta.dtype = dtype_of(array.dtype).value();
  for (int64_t size : array.sizes) meta.sizes.push_back(size);
  for (int64_t stride : array.strides) meta.strides.push_back(stride);
  return Tensor(std::move(meta), std::make_shared<Storage>(array.bytes, array.owner));
}

int64_t integer_at(const std::byte* at, DType dtype) {
  auto as = [&]<class T>(T) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return static_cast<int64_t>(value);
  };
  switch (dtype) {
    case DType::i8: return as(int8_t{});
    case DType::u8:
    case DType::boolean: return as(uint8_t{});
    case DType::i16: return as(int16_t{});
    case DType::u16: return as(uint16_t{});
    case DType::i32: return as(int32_t{});
    case DType::u32: return as(uint32_t{});
    default: return as(int64_t{});
  }
}

bool is_integer(DType dtype) {
  switch (dtype) {
    case DType::i8:
    case DType::u8:
    case DType::i16:
    case DType::u16:
    case DType::i32:
    case DType::u32:
    case DType::i64: return true;
    default: return false;
  }
}

/// Files have what NumPy has: integers of any width stand for classes, and float32 for bfloat16.
bool converts(DType from, DType to) {
  return from == to || (to == DType::i64 && is_integer(from)) || (to == DType::bf16 && from == DType::f32);
}

Tensor converted(const Tensor& dense, DType to) {
  if (dense.dtype() == to) return dense;
  Tensor out = Tensor::empty(to, dense.sizes());
  int64_t n = dense.numel().as_int();
  if (to == DType::i64) {
    auto* write = out.mutable_data<int64_t>();
    for (int64_t i = 0; i < n; ++i)
      write[i] = integer_at(dense.bytes() + static_cast<size_t>(i) * item_size(dense.dtype()), dense.dtype());
  } else {
    auto* write = out.mutable_data<uint16_t>();
    for (int64_t i = 0; i < n; ++i) write[i] = float_to_bfloat(dense.data<float>()[i]);
  }
  return out;
}

/// Row `i` of a tensor as it lies.
Tensor row_of(const Tensor& t, int64_t i) {
  TensorMeta meta = t.meta();
  meta.offset = meta.offset + meta.strides[0] * SymInt(i);
  meta.sizes.erase(0);
  meta.strides.erase(0);
  return t.with_meta(std::move(meta));
}

uint64_t mixed(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace

Data::Data(const std::string& path, const ExportedProgram& program, const std::vector<Target>& targets) : path_(path) {
  SymInt batch = 0;
  bool has_batch = false;
  for (const InputSpec& spec : program.signature.inputs) {
    if (spec.kind != InputKind::user_input) continue;
    Column column{.name = spec.name, .meta = {}, .all = {}, .by_sample = false};
    const Value* v = spec.arg.get<Value>();
    if (v) {
      const ValueInfo& info = program.graph->info(*v);
      require(info.type == ValueType::tensor, "the input ", spec.name, " is a number, which data files do not give");
      column.meta = info.meta;
      if (!has_batch && info.meta.rank() > 0) batch = info.meta.sizes[0], has_batch = true;
      column.by_sample = has_batch && info.meta.rank() > 0 && info.meta.sizes[0] == batch;
    } else {
      column.name.clear();  // a constant: nothing to give
    }
    columns_.push_back(std::move(column));
  }
  require(has_batch,
          "the program takes no tensor with a dimension for samples, so it cannot be trained on a data file");
  for (const Target& target : targets) {
    require(target.meta.rank() > 0 && target.meta.sizes[0] == batch, "the loss compares with a ", target.name, " ",
            target.meta, ", which has no row for each sample of the batch (", batch,
            "); return the loss from the program and use the loss none");
    columns_.push_back({.name = target.name, .meta = target.meta, .all = {}, .by_sample = true});
  }
  find_arrays(load_any_arrays(path));
  for (Column& column : columns_)
    if (column.all) check(column, batch);
  require(samples_ > 0, path_, ": there are no samples in it");
  size_t first = columns_.size() - targets.size();
  for (size_t i = 0; i < targets.size(); ++i)
    if (targets[i].classes.is_int() && targets[i].classes.as_int() > 0) check_classes(columns_[first + i], targets[i]);
}

void Data::find_arrays(const std::vector<NamedArray>& arrays) {
  std::vector<std::string> expected;
  for (const Column& column : columns_)
    if (!column.name.empty()) expected.push_back(text(column.name, ": ", column.meta));
  std::string list = text("expected ", join(expected, ", "), " (or arr_0, arr_1, ... in this order)");
  for (const NamedArray& named : arrays) {
    auto found = std::find_if(columns_.begin(), columns_.end(),
                              [&](const Column& c) { return !c.name.empty() && c.name == named.name; });
    if (auto number = position(named.name); found == columns_.end() && number) {
      size_t at = 0;  // constants have no array
      for (auto it = columns_.begin(); it != columns_.end() && found == columns_.end(); ++it)
        if (!it->name.empty() && at++ == *number) found = it;
    }
    require(found != columns_.end(), path_, ": no input is called ", quoted(named.name), "; ", list);
    require(!found->all, path_, ": ", found->name, " is given twice, by name and by position");
    found->all = tensor_of(named.array);
  }
  for (const Column& column : columns_)
    require(column.name.empty() || column.all, path_, ": there is no ", quoted(column.name), "; ", list);
}

void Data::check(Column& column, SymInt batch) {
  const TensorMeta& got = column.all.meta();
  require(converts(got.dtype, column.meta.dtype), path_, ": ", column.name, ": expected ", column.meta, ", got ", got,
          column.meta.dtype == DType::i64 ? "; classes are integers" : "");
  require(got.rank() == column.meta.rank(), path_, ": ", column.name, ": expected ", column.meta.rank(),
          " dimensions (", column.meta, ", ", batch, " samples at a time), got ", got);
  for (size_t d = column.by_sample ? 1 : 0; d < got.rank(); ++d)
    require(!column.meta.sizes[d].is_int() || column.meta.sizes[d] == got.sizes[d], path_, ": ", column.name,
            ", dimension ", d, ": expected ", column.meta.sizes[d], ", got ", got.sizes[d]);
  if (!column.by_sample) return;
  int64_t samples = got.sizes[0].as_int();
  if (samples_ < 0) samples_ = samples;
  std::string first;
  for (const Column& other : columns_)
    if (other.by_sample && other.all && first.empty()) first = other.name;
  require(samples == samples_, path_, ": ", column.name, " has ", samples, " samples and ", first, " has ", samples_,
          "; expected as many");
}

void Data::check_classes(const Column& column, const Target& target) const {
  int64_t classes = target.classes.as_int();
  for (int64_t sample = 0; sample < samples_; ++sample) {
    Tensor row = row_of(column.all, sample);
    if (!is_contiguous(row.meta())) row = contiguous_copy(row);
    int64_t n = row.numel().as_int();
    for (int64_t i = 0; i < n; ++i) {
      int64_t c = integer_at(row.bytes() + static_cast<size_t>(i) * item_size(row.dtype()), row.dtype());
      require((c >= 0 && c < classes) || c == target.ignored, path_, ": ", column.name, ": sample ", sample,
              " has the class ", c, "; the program tells ", classes, " classes apart, so expected 0 to ", classes - 1);
    }
  }
}

Tensor Data::rows(const Column& column, std::span<const int64_t> samples) const {
  if (!column.by_sample)
    return converted(is_contiguous(column.all.meta()) ? column.all : contiguous_copy(column.all), column.meta.dtype);
  Sizes sizes = column.all.sizes();
  sizes[0] = static_cast<int64_t>(samples.size());
  Tensor out = Tensor::empty(column.all.dtype(), sizes);
  bool dense = is_contiguous(row_of(column.all, 0).meta());
  size_t bytes = item_size(out.dtype());
  for (size_t d = 1; d < sizes.size(); ++d) bytes *= static_cast<size_t>(sizes[d].as_int());
  std::byte* write = out.mutable_bytes();
  for (size_t i = 0; i < samples.size(); ++i) {
    Tensor row = row_of(column.all, samples[i]);
    if (!dense) {
      Tensor to = row_of(out, static_cast<int64_t>(i));
      copy_elements(row, to);
    } else if (bytes > 0) {
      std::memcpy(write + i * bytes, row.bytes(), bytes);
    }
  }
  return converted(out, column.meta.dtype);
}

std::vector<CallArg> Data::batch(std::span<const int64_t> samples) const {
  std::vector<CallArg> out;
  for (const Column& column : columns_) {
    if (column.name.empty()) out.emplace_back();
    else out.emplace_back(rows(column, samples));
  }
  return out;
}

bool has_real_target(const std::string& path) {
  for (const NamedArray& named : load_any_arrays(path))
    if (named.name == "target") return is_floating(dtype_of(named.array.dtype).value());
  return false;
}

std::vector<int64_t> shuffled(int64_t count, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), int64_t{0});
  uint64_t stream = mixed(seed ^ mixed(static_cast<uint64_t>(epoch)));
  for (uint64_t i = order.size(); i > 1; --i) {
    stream += 1;
    uint64_t pick = mixed(stream) % i;  // the bias is far below what any count of samples shows
    std::swap(order[i - 1], order[pick]);
  }
  return order;
}

}  // namespace tenon::train

#include "tenon/train/training_state.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <mutex>
#include <set>

#include "tenon/io/safetensors.h"
#include "tenon/tensor/half.h"

namespace tenon::train {
namespace {

constexpr std::string_view setting_prefix = "setting.";

Array array_of(const Tensor& given) {
  auto dense = std::make_shared<Tensor>(is_contiguous(given.meta()) ? given : contiguous_copy(given));
  Array array{.dtype = std::string(name(dense->dtype())), .sizes = {}, .strides = {}, .bytes = {}, .owner = dense};
  for (SymInt size : dense->sizes()) array.sizes.push_back(size.as_int());
  for (SymInt stride : contiguous_strides(dense->sizes())) array.strides.push_back(stride.as_int());
  array.bytes = {dense->bytes(), static_cast<size_t>(dense->numel().as_int()) * item_size(dense->dtype())};
  return array;
}

Tensor tensor_of(const Array& array) {
  TensorMeta meta;
  meta.dtype = dtype_of(array.dtype).value();
  for (int64_t size : array.sizes) meta.sizes.push_back(size);
  for (int64_t stride : array.strides) meta.strides.push_back(stride);
  return Tensor(std::move(meta), std::make_shared<Storage>(array.bytes, array.owner));
}

// Numbers in words: a double so that it comes back bit for bit.
std::string in_words(double value) {
  char out[40];
  std::snprintf(out, sizeof out, "%.17g", value);
  return out;
}
std::string in_words(int64_t value) { return std::to_string(value); }

void from_words(const std::map<std::string, std::string>& metadata, const char* key, const std::string& path,
                auto& value) {
  auto found = metadata.find(key);
  require(found != metadata.end(), path, ": there is no ", quoted(key), " in it: it is not a state of tenon train");
  const std::string& words = found->second;
  auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), value);
  require(error == std::errc() && end == words.data() + words.size(), path, ": ", key, ": expected a number, got ",
          quoted(words));
}

// Every number of the position under its name.
void visit(auto& position, auto&& each) {
  each("epoch", position.epoch);
  each("batch", position.batch);
  each("samples", position.samples);
  each("right", position.right);
  each("counted", position.counted);
  each("loss", position.loss);
}

template <class T, class F>
bool all_finite(const Tensor& dense, F&& number) {
  const T* data = dense.data<T>();
  int64_t n = dense.numel().as_int();
  for (int64_t i = 0; i < n; ++i)
    if (!std::isfinite(number(data[i]))) return false;
  return true;
}

}  // namespace

void save_training(const std::string& path, const State& state, const Position& position,
                   const std::map<std::string, std::string>& settings) {
  std::shared_lock lock(state.mutex());
  std::vector<NamedArray> arrays;
  for (const std::string& name : state.names()) arrays.push_back({name, array_of(*state.find(name))});
  SafetensorsMetadata metadata;
  visit(position, [&](const char* key, const auto& value) { metadata.emplace_back(key, in_words(value)); });
  metadata.emplace_back("seed", std::to_string(state.seed()));
  metadata.emplace_back("draws", std::to_string(state.draws()));
  for (const auto& [key, value] : settings) metadata.emplace_back(std::string(setting_prefix) + key, value);
  save_safetensors(path, arrays, metadata);
}

Saved load_training(const std::string& path, State& state) {
  Saved out;
  std::map<std::string, std::string> metadata;
  for (auto& [key, value] : load_safetensors_metadata(path)) metadata[key] = value;
  for (const auto& [key, value] : metadata)
    if (starts_with(key, setting_prefix)) out.settings[key.substr(setting_prefix.size())] = value;
  visit(out.position, [&](const char* key, auto& value) { from_words(metadata, key, path, value); });
  uint64_t seed = 0;
  int64_t draws = 0;
  from_words(metadata, "seed", path, seed);
  from_words(metadata, "draws", path, draws);

  std::vector<NamedArray> arrays = load_safetensors(path);
  std::set<std::string> found;
  for (const NamedArray& named : arrays) {
    const Tensor* wanted = state.find(named.name);
    require(wanted != nullptr, path, ": it has ", quoted(named.name),
            ", which this training does not keep; resume with the model, optimizer and options it was started with");
    Tensor value = tensor_of(named.array);
    require(value.dtype() == wanted->dtype() && value.sizes() == wanted->sizes(), path, ": ", named.name, ": expected ",
            wanted->meta(), ", got ", value.meta(), "; resume with the model it was started with");
    found.insert(named.name);
  }
  for (const std::string& name : state.names())
    require(found.contains(name), path, ": it has no ", quoted(name),
            "; resume with the model, optimizer and options it was started with");
  for (const NamedArray& named : arrays) state.set(named.name, tensor_of(named.array));
  state.set_random(seed, draws);
  return out;
}

std::string not_finite_in(const State& state) {
  std::shared_lock lock(state.mutex());
  for (const std::string& name : state.names()) {
    const Tensor& t = *state.find(name);
    if (!is_floating(t.dtype())) continue;
    Tensor dense = is_contiguous(t.meta()) ? t : contiguous_copy(t);
    bool good = true;
    switch (dense.dtype()) {
      case DType::f32: good = all_finite<float>(dense, [](float x) { return x; }); break;
      case DType::f64: good = all_finite<double>(dense, [](double x) { return x; }); break;
      case DType::f16: good = all_finite<uint16_t>(dense, half_to_float); break;
      case DType::bf16: good = all_finite<uint16_t>(dense, bfloat_to_float); break;
      default: break;
    }
    if (!good) return name;
  }
  return "";
}

}  // namespace tenon::train

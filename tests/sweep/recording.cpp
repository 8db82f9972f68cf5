#include "tests/sweep/recording.h"

#include <cstring>
#include <filesystem>
#include <limits>

#include "tenon/base/file.h"
#include "tenon/io/zip.h"
#include "tenon/rules/call.h"

namespace tenon::sweep {
namespace {

double number(Json json) {
  if (json.is_number()) return json.as_double();
  std::string_view text = json.as_string();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return text == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
}

Sizes ints(Json json) {
  Sizes out;
  for (Json item : json.items()) out.push_back(SymInt(item.as_int()));
  return out;
}

MemoryFormat memory_format(Json json) {
  for (auto format :
       {MemoryFormat::contiguous, MemoryFormat::channels_last, MemoryFormat::channels_last_3d, MemoryFormat::preserve})
    if (name(format) == json.as_string()) return format;
  json.fail("an unknown memory format");
}

std::optional<Json> item(std::optional<Json> list, size_t i) {
  if (!list || list->is_null()) return std::nullopt;
  Json found = (*list)[i];
  return found.is_null() ? std::nullopt : std::optional(found);
}

std::string canonical(std::string name) {
  if (ends_with(name, ".default")) name.resize(name.size() - 8);
  return name.find("::") == name.npos ? "aten::" + name : name;  // of other namespaces names are whole
}

}  // namespace

TensorMeta Case::meta(Json json) const {
  TensorMeta meta;
  auto dtype = dtype_of(json.at("dtype").as_string());
  json.require(dtype.has_value(), "an unknown dtype");
  meta.dtype = *dtype;
  meta.sizes = ints(json.at("sizes"));
  meta.strides = ints(json.at("strides"));
  if (auto offset = json.find("offset")) meta.offset = SymInt(offset->as_int());
  return meta;
}

Tensor Case::tensor(Json json, Shared& shared) const {
  if (json.is_null()) return {};
  TensorMeta m = meta(json);
  Json place = json.at("storage");
  auto at = static_cast<size_t>(place[0].as_int()), length = static_cast<size_t>(place[1].as_int());
  std::shared_ptr<Storage> storage;
  auto key = json.find("shared");
  if (key && shared.contains(key->as_int())) {
    storage = shared[key->as_int()];
  } else {
    storage = std::make_shared<Storage>(length);
    json.require(at + length <= bytes_.size(), "bytes beyond the end of the data");
    if (length) std::memcpy(storage->mutable_data(), bytes_.data() + at, length);
    if (key) shared[key->as_int()] = storage;
  }
  require_fits(m, storage->size(), "a recorded tensor");
  return Tensor(std::move(m), std::move(storage));
}

CallArg Case::value(Json json, Shared& shared) const {
  if (json.is_null()) return {};
  if (json.is_bool()) return json.as_bool();
  JsonMember member = *json.members().begin();
  Json v = member.value;
  if (member.key == "i") return v.as_int();
  if (member.key == "f") return number(v);
  if (member.key == "c") return std::complex<double>(number(v[0]), number(v[1]));
  if (member.key == "s") return std::string(v.as_string());
  if (member.key == "dtype") return *dtype_of(v.as_string());
  if (member.key == "device") return Device{*device_type_of(v.as_string())};
  if (member.key == "layout") return Layout::strided;
  if (member.key == "memory_format") return memory_format(v);
  if (member.key == "t") return tensor(v, shared);
  if (member.key == "il") return ints(v);
  if (member.key == "tl") {
    std::vector<Tensor> list;
    for (Json item : v.items()) list.push_back(tensor(item, shared));
    return list;
  }
  if (member.key == "fl") {
    std::vector<double> list;
    for (Json item : v.items()) list.push_back(number(item));
    return list;
  }
  if (member.key == "bl") {
    std::vector<bool> list;
    for (Json item : v.items()) list.push_back(item.as_bool());
    return list;
  }
  json.require(member.key == "sl", "an unknown kind of value");
  std::vector<std::string> list;
  for (Json item : v.items()) list.emplace_back(item.as_string());
  return list;
}

CallArgs Case::arguments(const Op& op) const {
  Shared shared;
  std::vector<std::string> names;
  for (JsonMember member : json_.at("args").members()) names.emplace_back(member.key);
  std::vector<Given> given;
  size_t i = 0;
  for (JsonMember member : json_.at("args").members())
    given.emplace_back(names[i++].c_str(), value(member.value, shared));
  return tenon::bind(op, given);
}

uint64_t Case::given(const Op& op) const {
  uint64_t bits = 0;
  for (JsonMember member : json_.at("args").members())
    if (int at = op.schema.find(member.key); at >= 0) bits |= 1ull << at;
  return bits;
}

Expected Case::expected(Json own, std::optional<Json> reference, std::optional<Json> error,
                        std::optional<Json> alias) const {
  Expected out;
  out.meta = meta(own);
  Shared shared;
  std::optional<Json> data = reference ? reference : own.find("storage") ? std::optional(own) : std::nullopt;
  if (data) {
    TensorMeta stored = meta(*data);
    stored.strides = contiguous_strides(stored.sizes);
    auto at = static_cast<size_t>(data->at("storage")[0].as_int()),
         length = static_cast<size_t>(data->at("storage")[1].as_int());
    auto storage = std::make_shared<Storage>(length);
    if (length) std::memcpy(storage->mutable_data(), bytes_.data() + at, length);
    require_fits(stored, length, "a recorded result");
    out.exact = Tensor(std::move(stored), std::move(storage));
  }
  if (error) out.error = error->as_double();
  if (alias) out.alias = std::string(alias->as_string());
  return out;
}

std::vector<ExpectedResult> Case::results() const {
  std::vector<ExpectedResult> out;
  Json results = json_.at("results");
  auto references = json_.find("reference"), errors = json_.find("error"), aliases = json_.find("aliases");
  for (size_t i = 0; i < results.size(); ++i) {
    ExpectedResult result;
    Json json = results[i];
    auto reference = item(references, i), error = item(errors, i), alias = item(aliases, i);
    if (json.is_object() && json.find("t")) {
      result.is_tensor = true;
      Json t = json.at("t");
      result.tensors.emplace_back();
      if (!t.is_null()) result.tensors[0] = expected(t, reference, error, alias);
    } else if (json.is_object() && json.find("tl")) {
      result.is_list = true;
      Json list = json.at("tl");
      for (size_t k = 0; k < list.size(); ++k) {
        result.tensors.emplace_back();
        if (!list[k].is_null())
          result.tensors[k] = expected(list[k], item(reference, k), item(error, k), item(alias, k));
      }
    } else if (json.is_null()) {
      if (!random()) result.number = CallArg();
    } else {
      Shared shared;
      result.number = value(json, shared);
    }
    out.push_back(std::move(result));
  }
  return out;
}

std::map<std::string, Expected> Case::written() const {
  std::map<std::string, Expected> out;
  if (auto written = json_.find("written"))
    for (JsonMember member : written->members())
      out.emplace(member.key, expected(member.value.at("value"), member.value.given("reference"),
                                       member.value.given("error"), std::nullopt));
  return out;
}

std::optional<ExpectedGradients> Case::gradients() const {
  auto grad = json_.find("grad");
  if (!grad) return std::nullopt;
  ExpectedGradients out;
  auto cotangent = [&](Json json) {
    out.cotangents.push_back(json.is_null() ? Tensor()
                                            : expected(json, std::nullopt, std::nullopt, std::nullopt).exact);
  };
  for (Json json : grad->at("cotangents").items()) {
    if (json.is_array())
      for (Json one : json.items()) cotangent(one);
    else cotangent(json);
  }
  for (JsonMember member : grad->at("wrt").members()) {
    auto& entry = out.wrt[std::string(member.key)];
    if (member.value.is_null()) continue;
    entry = expected(member.value.at("reference"), std::nullopt, member.value.given("error"), std::nullopt);
  }
  return out;
}

struct Library::Body {
  struct Place {
    const ZipArchive* archive;
    const ZipEntry *json, *bytes;
  };
  std::vector<std::shared_ptr<const MappedFile>> files;
  std::vector<std::unique_ptr<ZipArchive>> archives;
  std::map<std::string, Place> places;
  std::map<std::string, std::string> schemas;
};

Library::Library(const std::string& folder, const std::string& schemas) : body_(std::make_unique<Body>()) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".zip") paths.push_back(entry.path().string());
  require(!paths.empty(), "there are no recordings in ", tenon::quoted(folder), "; make record makes them");
  for (const std::string& path : paths) {
    body_->files.push_back(MappedFile::open(path));
    body_->archives.push_back(std::make_unique<ZipArchive>(body_->files.back()->bytes(), path));
    const ZipArchive& archive = *body_->archives.back();
    for (const ZipEntry& entry : archive.entries()) {
      if (!ends_with(entry.name, ".json")) continue;
      std::string stem(entry.name.substr(0, entry.name.size() - 5));
      const ZipEntry* bytes = archive.find(stem + ".bin");
      require(bytes != nullptr, path, ": ", tenon::quoted(stem), " has no data");
      body_->places.emplace(canonical(stem), Body::Place{&archive, &entry, bytes});
    }
  }
  for (const std::string& line : split(read_file(schemas), '\n')) {
    std::string_view rest = trim(line);
    if (rest.empty()) continue;
    body_->schemas.emplace(std::string(rest.substr(0, rest.find('('))), std::string(rest));
  }
}

Library::~Library() = default;

std::vector<std::string> Library::names() const {
  std::vector<std::string> out;
  for (const auto& [name, place] : body_->places) out.push_back(name);
  return out;
}
bool Library::has(const std::string& name) const { return body_->places.contains(name); }

Recording Library::open(const std::string& name) const {
  const Body::Place& place = body_->places.at(name);
  return {name, JsonDocument(place.archive->content(*place.json), name), place.archive->bytes(*place.bytes)};
}

std::vector<std::string> Library::schema_names() const {
  std::vector<std::string> out;
  for (const auto& [name, text] : body_->schemas) out.push_back(name);
  return out;
}

const std::string* Library::schema(const std::string& name) const {
  auto found = body_->schemas.find(name);
  return found == body_->schemas.end() ? nullptr : &found->second;
}

std::string describe_call(const Op& op, std::span<const CallArg> args) {
  std::string out;
  for (size_t i = 0; i < args.size(); ++i) {
    const SchemaArg& slot = op.schema.args[i];
    if (slot.has_default && args[i] == slot.default_value) continue;
    out += text(out.empty() ? "" : ", ", slot.name, "=", describe(args[i]));
  }
  return out;
}

}  // namespace tenon::sweep

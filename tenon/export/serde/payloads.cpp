#include <cstring>
#include <map>
#include <optional>

#include "tenon/export/serde/archive.h"

namespace tenon::serde {
namespace {

constexpr size_t zeros_limit = size_t{512} << 20;  // of one folder together; they are there when they are written
constexpr size_t alignment = 16;                   // the largest item is a c128

// Bytes from the start of the storage to the end of the last element; nothing where that overflows.
std::optional<size_t> extent(const TensorMeta& meta) {
  int64_t last = meta.offset.as_int();
  for (size_t i = 0; i < meta.rank(); ++i) {
    int64_t size = meta.sizes[i].as_int(), step = 0;
    if (size == 0) return 0;
    if (__builtin_mul_overflow(size - 1, meta.strides[i].as_int(), &step) || __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  int64_t bytes = 0;
  if (last < 0 || __builtin_add_overflow(last, 1, &last) ||
      __builtin_mul_overflow(last, static_cast<int64_t>(item_size(meta.dtype)), &bytes))
    return std::nullopt;
  return static_cast<size_t>(bytes);
}

class PayloadReader {
 public:
  PayloadReader(const std::shared_ptr<const Archive>& archive, std::string folder, ReadContext& context,
                std::vector<const ZipEntry*>& unchecked)
      : archive_(archive), folder_(std::move(folder)), context_(context), unchecked_(unchecked) {}

  NamedTensor read(std::string_view name, Json entry) {
    auto described = entry.given("tensor_meta");
    entry.require(described.has_value(), "expected tensor_meta for ", quoted(name));
    archive_->budget().take_bytes(sizeof(NamedTensor) + sizeof(Tensor::Impl) + sizeof(Storage) + name.size(),
                                  "the list of payloads");
    NamedTensor out{.name = std::string(name)};
    if (auto param = entry.given("is_param")) out.is_parameter = param->as_bool();
    TensorMeta meta = read_tensor_meta(*described, context_);
    for (const Sizes* list : {&meta.sizes, &meta.strides})
      for (SymInt s : *list) described->require(s.is_int(), "expected constant sizes and strides, found ", s);
    described->require(meta.offset.is_int(), "expected a constant storage offset, found ", meta.offset);
    described->require(meta.layout == Layout::strided, "expected a dense tensor, found layout ", name_of(meta.layout));
    for (SymInt s : meta.strides) described->require(s.as_int() >= 0, "a stride is negative: ", s);

    auto bytes = extent(meta);
    described->require(bytes.has_value(), "the extent of ", quoted(name), " does not fit into 64 bits");

    std::string path = text(folder_, entry.at("path_name").as_string());
    const ZipEntry& payload = archive_->at(path);
    if (payload.size == 0) {
      out.absent = *bytes > 0;
      out.tensor = zeros(std::move(meta), *bytes, *described);
      return out;
    }
    std::string what = text(archive_->path(), ": ", quoted(name), " in ", path);
    require_fits(meta, payload.size, what);
    out.tensor = Tensor(std::move(meta), storage_of(path, payload));
    return out;
  }

  // Pickles are carried along, and never read.
  static bool is_opaque(Json entry) {
    auto pickled = entry.given("use_pickle");
    return pickled && pickled->as_bool();
  }
  OpaquePayload carry(std::string_view name, Json entry, bool is_weight) {
    std::string_view file = entry.at("path_name").as_string();
    const ZipEntry& payload = archive_->at(text(folder_, file));
    OpaquePayload out{.name = std::string(name), .file = std::string(file), .is_weight = is_weight};
    if (auto param = entry.given("is_param")) out.is_parameter = param->as_bool();
    if (auto described = entry.given("tensor_meta")) out.meta = read_tensor_meta(*described, context_);
    out.bytes = archive_->zip().bytes_unchecked(payload);
    out.owner = archive_;
    unchecked_.push_back(&payload);
    return out;
  }

 private:
  static std::string_view name_of(Layout layout) { return tenon::name(layout); }

  // Empty tensors, and fake ones, whose sizes are not empty: PyTorch reads those as zeros too.
  Tensor zeros(TensorMeta meta, size_t bytes, Json where) {
    where.require(bytes <= zeros_limit - zeros_,
                  "the payload is empty (as of a model exported without its weights), and ",
                  "zeros in its place would take more than ", zeros_limit >> 20, " MiB");
    zeros_ += bytes;
    std::shared_ptr<const std::byte> pages = zero_pages(bytes);
    return Tensor(std::move(meta), std::make_shared<Storage>(std::span(pages.get(), bytes), pages));
  }

  std::shared_ptr<Storage> storage_of(const std::string& path, const ZipEntry& entry) {
    auto& storage = storages_[path];
    if (storage) return storage;
    std::span<const std::byte> bytes = archive_->zip().bytes_unchecked(entry);
    if (reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0) {
      unchecked_.push_back(&entry);
      storage = std::make_shared<Storage>(bytes, archive_);
      return storage;
    }
    // An archive packed again by another tool: loads need aligned elements, so these bytes are copied.
    archive_->budget().take_bytes(bytes.size(), "payloads that are not aligned");
    archive_->zip().check(entry);
    storage = std::make_shared<Storage>(bytes.size());
    std::memcpy(storage->mutable_data(), bytes.data(), bytes.size());
    return storage;
  }

  const std::shared_ptr<const Archive>& archive_;
  std::string folder_;
  ReadContext& context_;
  std::vector<const ZipEntry*>& unchecked_;
  std::map<std::string, std::shared_ptr<Storage>> storages_;
  size_t zeros_ = 0;  // never above the limit
};

}  // namespace

std::vector<NamedTensor> read_payloads(const std::shared_ptr<const Archive>& archive, PayloadFolder folder,
                                       ReadContext& context, std::vector<const ZipEntry*>& unchecked,
                                       std::vector<OpaquePayload>& opaque) {
  std::string kind = folder == PayloadFolder::weights ? "weights" : "constants";
  std::string where = text("data/", kind, "/");
  JsonDocument document = archive->json(text(where, archive->model(), "_", kind, "_config.json"));
  PayloadReader reader(archive, where, context, unchecked);
  std::vector<NamedTensor> out;
  for (JsonMember entry : document.root().at("config").members()) {
    if (PayloadReader::is_opaque(entry.value))
      opaque.push_back(reader.carry(entry.key, entry.value, folder == PayloadFolder::weights));
    else out.push_back(reader.read(entry.key, entry.value));
  }
  return out;
}

}  // namespace tenon::serde

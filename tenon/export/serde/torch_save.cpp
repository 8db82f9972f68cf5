#include "tenon/export/serde/torch_save.h"

#include <charconv>
#include <cstring>

namespace tenon::serde {
namespace {

constexpr size_t alignment = 16;                         // the largest item is a c128
constexpr uint64_t inflated_limit = uint64_t{64} << 20;  // torch.save stores; other tools may have packed it again

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

Device device_at(PickleValue value) {
  std::string_view location = value.as_string();
  size_t colon = std::min(location.find(':'), location.size());
  std::optional<DeviceType> type = device_type_of(location.substr(0, colon));
  value.require(type.has_value(), "expected a device such as cpu or cuda:0, found ", quoted(location));
  Device device{.type = *type};
  if (colon == location.size()) return device;
  const char* end = location.data() + location.size();
  auto [rest, error] = std::from_chars(location.data() + colon + 1, end, device.index);
  value.require(error == std::errc() && rest == end && device.index >= 0 && device.index < 1024,
                "expected a device such as cpu or cuda:0, found ", quoted(location));
  return device;
}

// torch.Size((2, 3)) is a tuple.
Sizes read_sizes(PickleValue list) {
  if (list.is_call("torch", "Size") && list.args().size() == 1) list = list.args()[0];
  list.require(list.is(PickleKind::tuple) || list.is(PickleKind::list), "expected sizes or strides, found ",
               list.describe());
  Sizes out;
  for (size_t i = 0; i < list.size(); ++i) {
    out.push_back(list[i].as_int());
    list.require(list[i].as_int() >= 0, "a size or stride is negative: ", list[i].as_int());
  }
  return out;
}

ZipArchive open_inner(const Archive& archive, std::string_view name) {
  // Weights are not read when the file is opened; the entries in it have CRCs of their own.
  return ZipArchive(archive.zip().bytes_unchecked(archive.at(name)), text(archive.path(), ": ", name),
                    {.inflated = inflated_limit, .budget = &archive.budget()});
}

}  // namespace

TorchSave::TorchSave(std::shared_ptr<const Archive> archive, std::string_view name, std::string what)
    : what_(std::move(what)) {
  ZipArchive zip = open_inner(*archive, name);
  auto contents = std::make_shared<Contents>(Contents{std::move(archive), std::move(zip), ""});
  const std::string& subject = contents->zip.subject();
  require(!contents->zip.entries().empty(), subject, ": the archive is empty");
  std::string_view first = contents->zip.entries()[0].name;
  require(first.find('/') != std::string_view::npos, subject, ": expected a file written by torch.save");
  contents->root = first.substr(0, first.find('/') + 1);
  const ZipEntry* order = contents->zip.find(contents->root + "byteorder");
  require(!order || trim(contents->zip.content(*order)) == "little", subject,
          ": expected a file of a little-endian machine");
  const ZipEntry* pickle = contents->zip.find(contents->root + "data.pkl");
  require(pickle, subject, ": the entry data.pkl is missing");
  pickle_.emplace(contents->zip.bytes(*pickle), subject, PickleLimits{.budget = &contents->archive->budget()});
  contents_ = std::move(contents);
}

std::function<void()> TorchSave::check() const {
  return [contents = contents_, unchecked = unchecked_] {
    for (const ZipEntry* entry : unchecked) contents->zip.check(*entry);
  };
}

TorchSave::Pickled TorchSave::tensor(PickleValue value) {
  value.require(value.is(PickleKind::call), "expected a tensor in ", what_, ", found ", value.describe());
  return rebuilt(value.callee(), value.args());
}

TorchSave::Pickled TorchSave::rebuilt(PickleValue function, PickleValue args) {
  auto is = [&](std::string_view name, size_t least) {
    return function.is_global("torch._utils", name) && args.size() >= least;
  };
  if (is("_rebuild_tensor_v2", 6)) {
    check_flags(args, 6);
    return {plain(args, std::nullopt)};
  }
  if (is("_rebuild_tensor_v3", 7)) {
    check_flags(args, 7);
    PickleValue dtype = args[6];
    std::optional<DType> known;
    if (dtype.is(PickleKind::global) && dtype.module() == "torch") known = dtype_of(dtype.name());
    dtype.require(known.has_value(), "expected a dtype, found ", dtype.describe());
    return {plain(args, known)};
  }
  if (is("_rebuild_parameter", 2) || is("_rebuild_parameter_with_state", 2)) {
    Tensor t = tensor(args[0]).tensor;
    TensorMeta meta = t.meta();
    meta.requires_grad = args[1].as_bool();
    return {Tensor(std::move(meta), t.storage()), true};
  }
  if (function.is_global("torch._tensor", "_rebuild_from_type_v2") && args.size() == 4) {
    bool parameter = args[1].is_global("torch.nn.parameter", "Parameter");
    args[1].require(parameter || args[1].is_global("torch", "Tensor"), "expected a plain tensor in ", what_, ", found ",
                    args[1].describe());
    args[0].require(!args[0].is_global("torch._tensor", "_rebuild_from_type_v2"), "a tensor is wrapped twice");
    args[2].require(args[2].is(PickleKind::tuple), "expected the arguments of a call, found ", args[2].describe());
    Pickled made = rebuilt(args[0], args[2]);
    return {made.tensor, made.is_parameter || parameter};
  }
  function.fail("expected a tensor in ", what_, ", found a call of ",
                quoted(text(function.module(), ".", function.name())), ", which Tenon does not execute");
}

void TorchSave::check_flags(PickleValue args, size_t at) const {
  if (args.size() <= at || args[at].is_none()) return;
  PickleValue flags = args[at];
  flags.require(flags.is(PickleKind::dict), "expected the flags of a tensor, found ", flags.describe());
  for (size_t i = 0; i < flags.size(); ++i) {
    auto [key, value] = flags.pair(i);
    bool set = !value.is(PickleKind::boolean) || value.as_bool();
    flags.require(!set, "a tensor of ", what_, " is a view of the kind ", key.describe(),
                  ", which Tenon does not support");
  }
}

Tensor TorchSave::plain(PickleValue args, std::optional<DType> dtype) {
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
  meta.device = device_at(id[3]);
  args.require(meta.rank() <= 64 && meta.strides.size() == meta.rank(), "a tensor with ", meta.rank(), " sizes and ",
               meta.strides.size(), " strides");
  std::shared_ptr<Storage> storage = storage_of(id[2]);
  require_fits(meta, storage->size(), text(contents_->zip.subject(), ": a tensor of ", what_));
  return Tensor(std::move(meta), std::move(storage));
}

std::shared_ptr<Storage> TorchSave::storage_of(PickleValue key) {
  std::string_view name = key.as_string();
  if (auto found = storages_.find(name); found != storages_.end()) return found->second;
  const ZipEntry* entry = contents_->zip.find(text(contents_->root, "data/", name));
  key.require(entry, "the storage ", quoted(name), " of a tensor is missing");
  std::span<const std::byte> bytes = contents_->zip.bytes_unchecked(*entry);
  std::shared_ptr<Storage> storage;
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0) {
    storage = std::make_shared<Storage>(bytes, contents_);
    unchecked_.push_back(entry);
  } else {  // flat archives align nothing, and loads need aligned elements
    contents_->zip.check(*entry);
    contents_->archive->budget().take_bytes(bytes.size(), "tensors that are not aligned");
    storage = std::make_shared<Storage>(bytes.size());
    if (!bytes.empty()) std::memcpy(storage->mutable_data(), bytes.data(), bytes.size());
  }
  storages_.emplace(name, storage);
  return storage;
}

}  // namespace tenon::serde

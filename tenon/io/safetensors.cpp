#include "tenon/io/safetensors.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "tenon/base/file.h"
#include "tenon/io/json.h"

namespace tenon {
namespace {

struct Spelling {
  std::string_view in_file, ours;
  size_t size;
};
constexpr Spelling spellings[] = {
    {"BOOL", "bool", 1},       {"U8", "u8", 1},     {"I8", "i8", 1},   {"I16", "i16", 2}, {"U16", "u16", 2},
    {"F16", "f16", 2},         {"BF16", "bf16", 2}, {"I32", "i32", 4}, {"U32", "u32", 4}, {"F32", "f32", 4},
    {"I64", "i64", 8},         {"U64", "u64", 8},   {"F64", "f64", 8}, {"C64", "c64", 8}, {"F8_E4M3", "f8_e4m3fn", 1},
    {"F8_E5M2", "f8_e5m2", 1},
};

constexpr size_t length_bytes = 8;
constexpr uint64_t largest_header = 100'000'000;

uint64_t header_length(std::span<const std::byte> bytes) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), length_bytes);
  return length;
}

Array read_entry(Json entry, std::span<const std::byte> data, const std::shared_ptr<const void>& owner) {
  std::string_view dtype = entry.at("dtype").as_string();
  auto spelling =
      std::find_if(std::begin(spellings), std::end(spellings), [&](const Spelling& s) { return s.in_file == dtype; });
  entry.require(spelling != std::end(spellings), "the dtype ", quoted(dtype, 40), " is none that Tenon reads");
  Array array{.dtype = std::string(spelling->ours), .sizes = {}, .strides = {}, .bytes = {}, .owner = owner};
  uint64_t wanted = spelling->size;
  for (Json size : entry.at("shape").items()) {
    array.sizes.push_back(size.as_int());
    size.require(array.sizes.back() >= 0, "a size is negative");
    size.require(!__builtin_mul_overflow(wanted, static_cast<uint64_t>(array.sizes.back()), &wanted) &&
                     wanted < (uint64_t{1} << 47),
                 "the sizes are more than any memory holds");
  }
  entry.require(array.sizes.size() <= 64, "a tensor of ", array.sizes.size(), " dimensions; 64 are the most");
  array.strides.assign(array.sizes.size(), 1);
  for (size_t i = array.sizes.size(); i-- > 1;)
    array.strides[i - 1] = array.strides[i] * std::max<int64_t>(array.sizes[i], 1);
  Json offsets = entry.at("data_offsets");
  offsets.require(offsets.size() == 2, "expected two offsets, got ", offsets.size());
  int64_t begin = offsets[0].as_int(), end = offsets[1].as_int();
  offsets.require(begin >= 0 && begin <= end && static_cast<uint64_t>(end) <= data.size(), "the bytes ", begin, " to ",
                  end, " are not in the file, which has ", data.size());
  offsets.require(static_cast<uint64_t>(end - begin) == wanted, "expected ", wanted, " bytes for these sizes, got ",
                  end - begin);
  array.bytes = data.subspan(static_cast<size_t>(begin), static_cast<size_t>(wanted));
  bool is_bool = spelling->ours == "bool";
  bool aligned = reinterpret_cast<uintptr_t>(array.bytes.data()) % spelling->size == 0;
  if (!owner || !aligned || is_bool) {
    auto copy = std::make_shared<std::vector<std::byte>>(array.bytes.begin(), array.bytes.end());
    if (is_bool)
      for (std::byte& b : *copy) b = std::byte(b != std::byte(0));
    array.bytes = *copy;
    array.owner = std::move(copy);
  }
  return array;
}

}  // namespace

bool looks_like_safetensors(std::span<const std::byte> bytes) {
  return bytes.size() > length_bytes && bytes[length_bytes] == std::byte('{') && header_length(bytes) <= largest_header;
}

namespace {

std::string_view header_of(std::span<const std::byte> file, const std::string& subject) {
  require(file.size() >= length_bytes, subject, ": no safetensors file: it has ", file.size(), " bytes");
  uint64_t length = header_length(file);
  require(length <= largest_header && length <= file.size() - length_bytes, subject, ": the header should have ",
          length, " bytes, and the file has ", file.size(), "; it is cut off or no safetensors file");
  return {reinterpret_cast<const char*>(file.data()) + length_bytes, static_cast<size_t>(length)};
}

}  // namespace

std::vector<NamedArray> read_safetensors(std::span<const std::byte> file, const std::string& subject,
                                         std::shared_ptr<const void> owner) {
  std::string_view header = header_of(file, subject);
  JsonDocument document(header, subject);
  std::span<const std::byte> data = file.subspan(length_bytes + header.size());
  std::vector<NamedArray> out;
  for (JsonMember member : document.root().members())
    if (member.key != "__metadata__") out.push_back({std::string(member.key), read_entry(member.value, data, owner)});
  return out;
}

std::vector<NamedArray> load_safetensors(const std::string& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  return read_safetensors(file->bytes(), path, file);
}

SafetensorsMetadata load_safetensors_metadata(const std::string& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  JsonDocument document(header_of(file->bytes(), path), path);
  SafetensorsMetadata out;
  for (JsonMember member : document.root().members())
    if (member.key == "__metadata__")
      for (JsonMember entry : member.value.members())
        out.emplace_back(std::string(entry.key), std::string(entry.value.as_string()));
  return out;
}

void save_safetensors(const std::string& path, std::span<const NamedArray> arrays,
                      const SafetensorsMetadata& metadata) {
  struct Part {
    const NamedArray* named;
    const Spelling* spelling;
  };
  std::vector<Part> parts;
  std::set<std::string_view> names;
  for (const NamedArray& named : arrays) {
    auto spelling = std::find_if(std::begin(spellings), std::end(spellings),
                                 [&](const Spelling& s) { return s.ours == named.array.dtype; });
    require(spelling != std::end(spellings), named.name, ": dtype ", named.array.dtype,
            " cannot be written to a safetensors file");
    require(names.insert(named.name).second && named.name != "__metadata__", path, ": the name ", quoted(named.name),
            " is taken");
    int64_t dense = 1;
    for (size_t i = named.array.sizes.size(); i-- > 0; dense *= named.array.sizes[i])
      require(named.array.sizes[i] <= 1 || named.array.strides[i] == dense, named.name,
              ": expected a contiguous array");
    parts.push_back({&named, spelling});
  }
  // Large elements first: then every array is aligned, since the data have no gaps.
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.spelling->size > b.spelling->size; });
  JsonWriter header;
  header.begin_object();
  if (!metadata.empty()) {
    header.key("__metadata__");
    header.begin_object();
    for (const auto& [key, value] : metadata) header.field(key, std::string_view(value));
    header.end_object();
  }
  int64_t at = 0;
  for (const Part& part : parts) {
    header.key(part.named->name);
    header.begin_object();
    header.field("dtype", part.spelling->in_file);
    header.key("shape");
    header.begin_array();
    for (int64_t size : part.named->array.sizes) header.integer(size);
    header.end_array();
    header.key("data_offsets");
    header.begin_array();
    header.integer(at);
    header.integer(at += static_cast<int64_t>(part.named->array.bytes.size()));
    header.end_array();
    header.end_object();
  }
  header.end_object();
  std::string text = header.take();
  text.append((8 - text.size() % 8) % 8, ' ');
  uint64_t length = text.size();
  AtomicFile out(path);
  out.write(std::as_bytes(std::span(&length, 1)));
  out.write(text);
  for (const Part& part : parts) out.write(part.named->array.bytes);
  out.commit();
}

std::vector<NamedArray> load_any_arrays(const std::string& path) {
  std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  if (looks_like_safetensors(file->bytes())) return read_safetensors(file->bytes(), path, file);
  return load_arrays(path);
}

}  // namespace tenon

#include "tenon/io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "tenon/base/error.h"
#include "tenon/io/crc32.h"

namespace tenon {

namespace {

using Bytes = std::span<const std::byte>;

constexpr uint32_t local_sign = 0x04034b50, central_sign = 0x02014b50, end_sign = 0x06054b50;
constexpr uint32_t end64_sign = 0x06064b50, locator_sign = 0x07064b50;
constexpr size_t local_size = 30, central_size = 46, end_size = 22, end64_size = 56, locator_size = 20;
constexpr uint16_t encrypted = 1, has_descriptor = 8, strongly_encrypted = 64;
constexpr uint64_t none32 = 0xFFFFFFFF, none16 = 0xFFFF;  // "see the zip64 record"

template <class T>
T little(Bytes bytes, size_t at) {
  T value;
  expect(at + sizeof(T) <= bytes.size(), "a zip field past its record");
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}
uint64_t u16(Bytes bytes, size_t at) { return little<uint16_t>(bytes, at); }
uint64_t u32(Bytes bytes, size_t at) { return little<uint32_t>(bytes, at); }
uint64_t u64(Bytes bytes, size_t at) { return little<uint64_t>(bytes, at); }

// A name from the file as a part of a message, made safe to show only when the message is made.
struct Shown {
  std::string_view name;
  explicit Shown(std::string_view name) : name(name) {}
};
void append_text(std::string& out, Shown shown) { out += quoted(shown.name); }

std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

struct Directory {
  uint64_t start, size, count;
};

/// Reads an archive's directory. Every error names the archive.
struct Reader {
  Bytes file;
  const std::string& subject;
  const ZipLimits& limits;

  template <class... Parts>
  void need(bool ok, const Parts&... parts) const {
    if (!ok) [[unlikely]]
      fail(subject, ": not a valid zip archive: ", parts...);
  }
  Bytes part(uint64_t start, uint64_t size, std::string_view what) const {
    need(start <= file.size() && size <= file.size() - start, what, " at ", start, " with ", size,
         " bytes reaches past the end of the file (", file.size(), " bytes); it may have been cut short");
    return file.subspan(start, size);
  }

  // The end record is the last one whose comment reaches the end of the file exactly.
  size_t find_end() const {
    need(file.size() >= end_size, "a file of ", file.size(), " bytes is too short");
    size_t last = file.size() - end_size;
    size_t first = last > none16 ? last - none16 : 0;
    for (size_t at = last + 1; at-- > first;)
      if (u32(file, at) == end_sign && u16(file, at + 20) == file.size() - at - end_size) return at;
    need(false, "it has no end record; it may have been cut short");
    return 0;
  }

  Directory find_directory() const {
    size_t at = find_end();
    Bytes end = file.subspan(at, end_size);
    need(u16(end, 4) == 0 && u16(end, 6) == 0 && u16(end, 8) == u16(end, 10), "it is split over several disks");
    Directory directory{u32(end, 16), u32(end, 12), u16(end, 10)};
    if (at >= locator_size && u32(file, at - locator_size) == locator_sign) {
      Bytes locator = file.subspan(at - locator_size, locator_size);
      at -= locator_size;
      need(u32(locator, 4) == 0 && u32(locator, 16) <= 1, "it is split over several disks");
      uint64_t start = u64(locator, 8);
      Bytes end64 = part(start, end64_size, "the zip64 end record");
      need(u32(end64, 0) == end64_sign, "there is no zip64 end record at ", start);
      need(start + end64_size <= at && u64(end64, 4) == at - start - 12,
           "the zip64 end record does not end at its locator");
      need(u32(end64, 16) == 0 && u32(end64, 20) == 0 && u64(end64, 24) == u64(end64, 32),
           "it is split over several disks");
      auto agree = [&](uint64_t& value, uint64_t none, uint64_t wide) {
        need(value == none || value == wide, "the two end records disagree: ", value, " and ", wide);
        value = wide;
      };
      agree(directory.count, none16, u64(end64, 32));
      agree(directory.size, none32, u64(end64, 40));
      agree(directory.start, none32, u64(end64, 48));
      at = start;
    }
    part(directory.start, directory.size, "the directory");
    need(directory.start + directory.size == at, "the directory ends at ", directory.start + directory.size,
         " and the end record starts at ", at);
    need(directory.count <= limits.entries, directory.count, " entries are above the limit of ", limits.entries);
    need(directory.count <= directory.size / central_size, "a directory of ", directory.size, " bytes cannot hold ",
         directory.count, " entries");
    return directory;
  }

  /// Replaces each value that says "see the zip64 field" by the next one of that field.
  void widen(Bytes extra, std::initializer_list<uint64_t*> values, std::string_view name) const {
    bool wide = std::any_of(values.begin(), values.end(), [](uint64_t* value) { return *value == none32; });
    while (wide && extra.size() >= 4) {
      uint64_t size = u16(extra, 2);
      need(size <= extra.size() - 4, "the extra field of ", Shown(name), " reaches past its end");
      if (u16(extra, 0) == 1) {
        Bytes field = extra.subspan(4, size);
        for (uint64_t* value : values) {
          if (*value != none32) continue;
          need(field.size() >= 8, "the zip64 field of ", Shown(name), " is too short");
          *value = u64(field, 0);
          field = field.subspan(8);
        }
        return;
      }
      extra = extra.subspan(4 + size);
    }
    // Without such a field the values mean themselves, and the bounds refuse them where they are wrong.
  }

  /// Reads the entry of the directory at `at`, which moves behind it, and its local header.
  ZipEntry read_entry(Bytes directory, size_t& at, uint64_t directory_start) const {
    need(directory.size() - at >= central_size, "the directory ends inside an entry");
    Bytes central = directory.subspan(at);
    need(u32(central, 0) == central_sign, "the directory has no entry at ", directory_start + at);
    uint64_t flags = u16(central, 8), method = u16(central, 10);
    uint64_t name_size = u16(central, 28), extra_size = u16(central, 30), comment_size = u16(central, 32);
    need(central.size() - central_size >= name_size + extra_size + comment_size, "the directory ends inside an entry");
    at += central_size + name_size + extra_size + comment_size;

    ZipEntry entry;
    entry.name = as_text(central.subspan(central_size, name_size));
    entry.crc = static_cast<uint32_t>(u32(central, 16));
    entry.packed = u32(central, 20);
    entry.size = u32(central, 24);
    entry.header = u32(central, 42);
    widen(central.subspan(central_size + name_size, extra_size), {&entry.size, &entry.packed, &entry.header},
          entry.name);
    entry.deflated = method == 8;

    const char* bad = bad_zip_name(entry.name);
    need(bad == nullptr, "the entry name ", Shown(entry.name), " ", bad ? bad : "");
    need((flags & (encrypted | strongly_encrypted)) == 0, "entry ", Shown(entry.name), " is encrypted");
    need(method == 0 || method == 8, "entry ", Shown(entry.name), " has compression method ", method,
         "; only 0 (stored) and 8 (deflated) are read");
    need(u16(central, 34) == 0 || u16(central, 34) == none16, "it is split over several disks");
    need(method == 8 || entry.packed == entry.size, "the stored entry ", Shown(entry.name),
         " has two sizes: ", entry.packed, " and ", entry.size);

    Bytes local = part(entry.header, local_size, "a local header");
    need(u32(local, 0) == local_sign, "entry ", Shown(entry.name), " has no local header at ", entry.header);
    uint64_t local_name_size = u16(local, 26), local_extra_size = u16(local, 28);
    Bytes rest = part(entry.header + local_size, local_name_size + local_extra_size, "a local header");
    auto agree = [&](bool ok, std::string_view what) {
      need(ok, "the local header of ", Shown(entry.name), " has another ", what, " than the directory");
    };
    agree(as_text(rest.first(local_name_size)) == entry.name, "name");
    agree(u16(local, 8) == method, "compression method");
    agree((u16(local, 6) & (encrypted | has_descriptor)) == (flags & (encrypted | has_descriptor)), "set of flags");
    if ((flags & has_descriptor) == 0) {
      uint64_t size = u32(local, 22), packed = u32(local, 18);
      widen(rest.subspan(local_name_size), {&size, &packed}, entry.name);
      agree(u32(local, 14) == entry.crc, "CRC");
      agree(size == entry.size && packed == entry.packed, "size");
    }
    entry.data = entry.header + local_size + local_name_size + local_extra_size;
    part(entry.data, entry.packed, "an entry");
    return entry;
  }
};

}  // namespace

const char* bad_zip_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.find('\0') != std::string_view::npos) return "holds a NUL character";
  if (name.front() == '/') return "is absolute";
  for (size_t start = 0; start <= name.size();) {
    size_t end = std::min(name.find('/', start), name.size());
    if (name.substr(start, end - start) == "..") return "leaves the archive by '..'";
    start = end + 1;
  }
  return nullptr;
}

// An archive without entries begins with its end record.
bool looks_like_zip(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && (u32(bytes, 0) == local_sign || u32(bytes, 0) == end_sign);
}

struct ZipArchive::Body {
  std::span<const std::byte> file;
  std::string subject;
  ZipLimits limits;
  std::vector<ZipEntry> entries;
  std::vector<uint32_t> by_name;
  std::unique_ptr<std::atomic<bool>[]> checked;  // one for each entry
  std::mutex inflating;
  std::vector<std::unique_ptr<std::byte[]>> inflated;  // one for each entry, under the mutex
  uint64_t inflated_size = 0;

  size_t index(const ZipEntry& entry) const {
    expect(&entry >= entries.data() && &entry < entries.data() + entries.size(), "an entry of another archive");
    return static_cast<size_t>(&entry - entries.data());
  }
  std::span<const std::byte> inflate(const ZipEntry& entry);
};

ZipArchive::ZipArchive(std::span<const std::byte> file, std::string subject, const ZipLimits& limits)
    : body_(std::make_unique<Body>()) {
  Body& body = *body_;
  body.file = file;
  body.subject = std::move(subject);
  body.limits = limits;
  Reader reader{file, body.subject, body.limits};
  Directory directory = reader.find_directory();
  Bytes records = file.subspan(directory.start, directory.size);
  if (limits.budget) limits.budget->take_bytes(directory.count * sizeof(ZipEntry) * 2, "the directory of an archive");
  body.entries.reserve(directory.count);
  size_t at = 0;
  for (uint64_t i = 0; i < directory.count; ++i)
    body.entries.push_back(reader.read_entry(records, at, directory.start));
  reader.need(at == records.size(), "the directory holds more than its ", directory.count, " entries");

  std::vector<uint32_t>& order = body.by_name;
  order.resize(body.entries.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<uint32_t>(i);
  auto entry = [&](uint32_t i) -> const ZipEntry& { return body.entries[i]; };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return entry(a).header < entry(b).header; });
  uint64_t end = 0;
  for (uint32_t i : order) {
    reader.need(entry(i).header >= end, "entry ", Shown(entry(i).name), " overlaps another");
    end = entry(i).data + entry(i).packed;
  }
  reader.need(end <= directory.start, "an entry overlaps the directory");
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return entry(a).name < entry(b).name; });
  for (size_t i = 1; i < order.size(); ++i)
    reader.need(entry(order[i - 1]).name != entry(order[i]).name, "two entries are named ",
                Shown(entry(order[i]).name));
  body.checked = std::make_unique<std::atomic<bool>[]>(body.entries.size());
  body.inflated.resize(body.entries.size());
}

ZipArchive::~ZipArchive() = default;
ZipArchive::ZipArchive(ZipArchive&&) noexcept = default;
ZipArchive& ZipArchive::operator=(ZipArchive&&) noexcept = default;

const std::string& ZipArchive::subject() const { return body_->subject; }
std::span<const ZipEntry> ZipArchive::entries() const { return body_->entries; }

const ZipEntry* ZipArchive::find(std::string_view name) const {
  auto found = std::lower_bound(body_->by_name.begin(), body_->by_name.end(), name,
                                [&](uint32_t i, std::string_view wanted) { return body_->entries[i].name < wanted; });
  if (found == body_->by_name.end() || body_->entries[*found].name != name) return nullptr;
  return &body_->entries[*found];
}

std::span<const std::byte> ZipArchive::Body::inflate(const ZipEntry& entry) {
  std::scoped_lock lock(inflating);
  std::unique_ptr<std::byte[]>& kept = inflated[index(entry)];
  if (kept) return {kept.get(), entry.size};
  auto need = [&](bool ok, const auto&... parts) {
    require(ok, subject, ": entry ", Shown(entry.name), " ", parts...);
  };
  if (!limits.budget)
    need(entry.size <= limits.inflated - inflated_size, "of ", entry.size,
         " bytes brings the inflated content above the limit of ", limits.inflated, " bytes");
  need(entry.size / limits.ratio <= entry.packed, "claims ", entry.size, " bytes deflated to ", entry.packed,
       ", more than deflate can");
  if (limits.budget) limits.budget->take_bytes(entry.size, "deflated entries");
  auto buffer =
      std::make_unique_for_overwrite<std::byte[]>(entry.size + 1);  // one more, to notice content that is too long
  z_stream stream{};
  expect(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zlib does not start");
  // zlib counts in 32 bits: hand both sides over in pieces.
  constexpr uint64_t piece = 1 << 30;
  uint64_t in = 0, out = 0;
  int status = Z_OK;
  while (status == Z_OK) {
    uint64_t in_piece = std::min(entry.packed - in, piece), out_piece = std::min(entry.size + 1 - out, piece);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(file.data() + entry.data + in));
    stream.avail_in = static_cast<uInt>(in_piece);
    stream.next_out = reinterpret_cast<Bytef*>(buffer.get() + out);
    stream.avail_out = static_cast<uInt>(out_piece);
    status = ::inflate(&stream, Z_NO_FLUSH);
    in += in_piece - stream.avail_in;
    out += out_piece - stream.avail_out;
  }
  inflateEnd(&stream);
  need(status == Z_STREAM_END && out == entry.size && in == entry.packed, "does not inflate to its ", entry.size,
       " bytes; the file is damaged");
  kept = std::move(buffer);
  inflated_size += entry.size;
  return {kept.get(), entry.size};
}

std::span<const std::byte> ZipArchive::bytes_unchecked(const ZipEntry& entry) const {
  body_->index(entry);
  return entry.deflated ? body_->inflate(entry) : body_->file.subspan(entry.data, entry.size);
}

void ZipArchive::check(const ZipEntry& entry) const {
  std::atomic<bool>& checked = body_->checked[body_->index(entry)];
  if (checked.load(std::memory_order_relaxed)) return;
  require(crc32(bytes_unchecked(entry)) == entry.crc, body_->subject, ": entry ", Shown(entry.name),
          " does not have the content its CRC promises; the file is damaged");
  checked.store(true, std::memory_order_relaxed);
}

std::span<const std::byte> ZipArchive::bytes(const ZipEntry& entry) const {
  check(entry);
  return bytes_unchecked(entry);
}

std::string_view ZipArchive::content(const ZipEntry& entry) const { return as_text(bytes(entry)); }

}  // namespace tenon

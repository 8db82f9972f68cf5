#include "tenon/base/error.h"
#include "tenon/io/crc32.h"
#include "tenon/io/zip.h"

namespace tenon {

namespace {

constexpr uint64_t none32 = 0xFFFFFFFF, none16 = 0xFFFF;
constexpr uint64_t alignment = 64;

void put(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}
void put16(std::string& out, uint64_t value) { put(out, value, 2); }
void put32(std::string& out, uint64_t value) { put(out, value, 4); }
void put64(std::string& out, uint64_t value) { put(out, value, 8); }
uint64_t narrow(uint64_t value, uint64_t none) { return value < none ? value : none; }

// What a style says of every entry.
struct Common {
  uint64_t version, flags, date;
};
Common common(ZipStyle style, bool wide) {
  if (style == ZipStyle::pytorch) return {0, 0x0808, 0};
  return {wide ? 45u : 20u, 0x0800, 0x21};  // 1 January 1980, the first a zip can tell
}

}  // namespace

ZipWriter::ZipWriter(const std::string& path, ZipStyle style) : file_(std::in_place, path), style_(style) {}

ZipWriter::ZipWriter(std::string* memory, ZipStyle style) : memory_(memory), style_(style) {}

void ZipWriter::write(std::span<const std::byte> bytes) {
  if (file_) file_->write(bytes);
  else memory_->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

uint32_t ZipWriter::add(std::string_view name, std::span<const std::byte> content) {
  const char* bad = bad_zip_name(name);
  require(bad == nullptr && name.size() < none16, "cannot write ", file_ ? quoted(file_->path(), 400) : "an archive",
          ": the entry name ", quoted(name), " ", bad ? bad : "is too long");
  Written entry{std::string(name), content.size(), position(), crc32(content)};
  bool wide = entry.size >= none32;
  bool pytorch = style_ == ZipStyle::pytorch;

  std::string extra;
  if (wide) {
    put16(extra, 1);
    put16(extra, 16);
    put64(extra, entry.size);
    put64(extra, entry.size);
  }
  if (pytorch) {
    uint64_t data = entry.header + 30 + name.size() + extra.size() + 4;
    uint64_t padding = (alignment - data % alignment) % alignment;
    extra += "FB";
    put16(extra, padding);
    extra.append(padding, 'Z');
  }
  Common every = common(style_, wide);
  std::string header;
  put32(header, 0x04034b50);
  put16(header, every.version);
  put16(header, every.flags);
  put16(header, 0);  // stored
  put16(header, 0);  // time
  put16(header, every.date);
  put32(header, pytorch ? 0 : entry.crc);
  put32(header, pytorch && !wide ? 0 : narrow(entry.size, none32));
  put32(header, pytorch && !wide ? 0 : narrow(entry.size, none32));
  put16(header, name.size());
  put16(header, extra.size());
  header += name;
  header += extra;
  write(header);
  write(content);
  if (pytorch) {
    std::string descriptor;
    put32(descriptor, 0x08074b50);
    put32(descriptor, entry.crc);
    put(descriptor, entry.size, wide ? 8 : 4);
    put(descriptor, entry.size, wide ? 8 : 4);
    write(descriptor);
  }
  entries_.push_back(std::move(entry));
  return entries_.back().crc;
}

void ZipWriter::commit() {
  uint64_t start = position();
  for (const Written& entry : entries_) {
    std::string extra;
    if (entry.size >= none32) {
      put64(extra, entry.size);
      put64(extra, entry.size);
    }
    if (entry.header >= none32) put64(extra, entry.header);
    if (!extra.empty()) {
      std::string field;
      put16(field, 1);
      put16(field, extra.size());
      extra = field + extra;
    }
    Common every = common(style_, !extra.empty());
    std::string record;
    put32(record, 0x02014b50);
    put16(record, every.version);
    put16(record, every.version);
    put16(record, every.flags);
    put16(record, 0);
    put16(record, 0);
    put16(record, every.date);
    put32(record, entry.crc);
    put32(record, narrow(entry.size, none32));
    put32(record, narrow(entry.size, none32));
    put16(record, entry.name.size());
    put16(record, extra.size());
    put16(record, 0);  // comment
    put16(record, 0);  // disk
    put16(record, 0);  // attributes
    put32(record, 0);
    put32(record, narrow(entry.header, none32));
    record += entry.name;
    record += extra;
    write(record);
  }
  uint64_t end = position(), count = entries_.size();
  std::string record;
  if (style_ == ZipStyle::pytorch || count >= none16 || end >= none32) {
    put32(record, 0x06064b50);
    put64(record, 44);
    put16(record, 0x031e);
    put16(record, 45);
    put32(record, 0);
    put32(record, 0);
    put64(record, count);
    put64(record, count);
    put64(record, end - start);
    put64(record, start);
    put32(record, 0x07064b50);
    put32(record, 0);
    put64(record, end);
    put32(record, 1);
  }
  put32(record, 0x06054b50);
  put16(record, 0);
  put16(record, 0);
  put16(record, narrow(count, none16));
  put16(record, narrow(count, none16));
  put32(record, narrow(end - start, none32));
  put32(record, narrow(start, none32));
  put16(record, 0);
  write(record);
  if (file_) file_->commit();
}

}  // namespace tenon

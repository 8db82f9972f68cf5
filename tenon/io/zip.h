// Zip archives: read from bytes in memory (a mapped file, or an entry of another archive), and written as PyTorch
// writes them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/base/budget.h"
#include "tenon/base/file.h"

namespace tenon {

struct ZipEntry {
  std::string_view name;  // as in the file, of which it is a part; show it through quoted()
  uint64_t size = 0;      // of the content
  uint64_t packed = 0;    // bytes in the file
  uint64_t data = 0;      // where they start
  uint64_t header = 0;    // where the local header starts
  uint32_t crc = 0;
  bool deflated = false;
};

struct ZipLimits {
  size_t entries = 1 << 20;
  uint64_t inflated = uint64_t{1} << 30;  // all entries together, where there is no budget
  uint64_t ratio = 1100;                  // deflate itself cannot pass 1032
  Budget* budget = nullptr;               // of the file that the archive is, or lies in; must outlive the archive
};

/// Opening checks the whole directory against the local headers and the bounds of the file, and touches no content.
/// Refused: encryption, methods other than stored and deflated, duplicate or unsafe names, overlapping entries, several
/// disks. May be read from several threads.
class ZipArchive {
 public:
  /// The bytes must outlive the archive; `subject` names them in messages.
  ZipArchive(std::span<const std::byte> file, std::string subject, const ZipLimits& limits = {});
  ~ZipArchive();
  ZipArchive(ZipArchive&&) noexcept;
  ZipArchive& operator=(ZipArchive&&) noexcept;

  const std::string& subject() const;
  std::span<const ZipEntry> entries() const;          // in the order of the directory
  const ZipEntry* find(std::string_view name) const;  // null where there is none

  /// The content, checked against its CRC on first use. A stored entry is a part of the file, at any alignment; a
  /// deflated one is inflated once and kept as long as the archive.
  std::span<const std::byte> bytes(const ZipEntry& entry) const;
  /// The same without reading it through; check() does that when the caller chooses.
  std::span<const std::byte> bytes_unchecked(const ZipEntry& entry) const;
  void check(const ZipEntry& entry) const;
  /// bytes() as text.
  std::string_view content(const ZipEntry& entry) const;

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

/// Whether the bytes start like an archive with at least one entry.
bool looks_like_zip(std::span<const std::byte> bytes);

enum class ZipStyle {
  pytorch,  // data descriptors, content at multiples of 64, zip64 records always, no dates: as torch.save and
            // torch.export.save
  plain,    // sizes in the local headers, zip64 only where needed: as most writers, for .npz
};

/// Writes stored entries to a file that appears on commit(), or appends them to a string.
class ZipWriter {
 public:
  explicit ZipWriter(const std::string& path, ZipStyle style = ZipStyle::pytorch);
  /// An archive inside something else; `memory` must be empty and outlive the writer.
  explicit ZipWriter(std::string* memory, ZipStyle style = ZipStyle::pytorch);

  /// Returns the CRC of the content.
  uint32_t add(std::string_view name, std::span<const std::byte> content);
  uint32_t add(std::string_view name, std::string_view content) { return add(name, std::as_bytes(std::span(content))); }
  void commit();

 private:
  struct Written {
    std::string name;
    uint64_t size, header;
    uint32_t crc;
  };
  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes) { write(std::as_bytes(std::span(bytes))); }
  uint64_t position() const { return memory_ ? memory_->size() : file_->position(); }

  std::optional<AtomicFile> file_;  // empty where it writes to memory
  std::string* memory_ = nullptr;
  ZipStyle style_;
  std::vector<Written> entries_;
};

/// Why a name cannot be an entry's, or null where it can: empty, NUL, absolute, or with a '..' component.
const char* bad_zip_name(std::string_view name);

}  // namespace tenon

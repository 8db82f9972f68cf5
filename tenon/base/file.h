// Files: mapped for reading, and written so that an output appears whole or not at all.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/base/signals.h"

namespace tenon {

/// A whole file mapped read-only. Held by shared_ptr, because tensors over the mapping outlive the reader that opened
/// it.
class MappedFile {
 public:
  /// Missing, unreadable and empty files, folders, pipes and devices are errors.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes)
      : path_(std::move(path)), bytes_(bytes), watched_(bytes.data(), bytes.size(), path_) {}
  std::string path_;
  std::span<const std::byte> bytes_;
  WatchedMapping watched_;
};

/// Writes a temporary file beside the target; commit() brings it to the disk and renames it over the target. Without
/// commit(), or where a signal ends the process (see signals.h), nothing is left behind. Every failed write, the last
/// ones at commit() included, is an error. A link is followed, to a file that is not there yet too.
class AtomicFile {
 public:
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view bytes) { write(std::as_bytes(std::span(bytes))); }
  /// Appends that many bytes as memory to be filled in any order and by any thread until commit(); position() must be a
  /// multiple of 4096. The space on the disk is taken at once: a full disk is an error here, never later.
  std::span<std::byte> write_mapped(uint64_t size);
  /// Replaces bytes that were written before.
  void overwrite(uint64_t position, std::span<const std::byte> bytes);
  uint64_t position() const { return flushed_ + buffer_.size(); }
  void commit();
  const std::string& path() const { return path_; }

 private:
  void flush();
  void write_through(std::span<const std::byte> bytes);
  void unmap();
  void discard();

  std::string path_;       // as the caller spelled it
  std::string target_;     // links followed
  std::string temporary_;  // empty once renamed or removed
  std::optional<HalfWritten> half_written_;
  int descriptor_ = -1;
  uint64_t flushed_ = 0;
  std::vector<std::byte> buffer_;
  std::vector<std::span<std::byte>> mapped_;
};

/// Zeros that are not to be written; they take no memory until then.
std::shared_ptr<const std::byte> zero_pages(size_t size);

/// The whole content; an empty file gives an empty string. Pipes work too.
std::string read_file(const std::string& path);
void write_file_atomically(const std::string& path, std::string_view content);

}  // namespace tenon

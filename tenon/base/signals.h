// What signals find: files that are half written, and mappings of files that others may cut short.
#pragma once
#include <cstddef>
#include <string>

namespace tenon {

/// For a program's main, not for libraries: call it once. SIGINT, SIGTERM and SIGHUP then remove files that are half
/// written before they end the process as they do anyway. Reading a mapped file that was cut short meanwhile ends the
/// process with one sentence and status 1 instead of by SIGBUS.
void install_signal_handlers();

/// A file to remove when a signal ends the process; for as long as it lives. At most 16 at a time are remembered.
class HalfWritten {
 public:
  explicit HalfWritten(const std::string& path);
  ~HalfWritten();
  HalfWritten(const HalfWritten&) = delete;
  HalfWritten& operator=(const HalfWritten&) = delete;

 private:
  size_t slot_;
};

/// Memory that is a file's content, and the sentence to end with where it cannot be read any more. At most 64 at a time
/// are remembered.
class WatchedMapping {
 public:
  WatchedMapping(const void* start, size_t size, const std::string& path);
  ~WatchedMapping();
  WatchedMapping(const WatchedMapping&) = delete;
  WatchedMapping& operator=(const WatchedMapping&) = delete;

 private:
  size_t slot_;
};

}  // namespace tenon

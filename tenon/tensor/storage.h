// The memory behind tensors. Tensors that share a storage see each other's writes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tenon {

/// Bytes owned by us, or borrowed from something that `owner` keeps alive (a mapped file). Borrowed bytes are copied
/// when first written; every tensor over this storage sees the copy, because they hold the storage and not its address.
class Storage {
 public:
  explicit Storage(size_t bytes);  // uninitialized, 64-byte aligned
  Storage(std::span<const std::byte> borrowed, std::shared_ptr<const void> owner);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  const std::byte* data() const { return data_; }
  std::byte* mutable_data();  // makes borrowed bytes our own
  size_t size() const { return size_; }
  uint64_t version() const { return version_; }
  void bump_version() { ++version_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  uint64_t version_ = 0;
  std::shared_ptr<const void> owner_;  // shared: many storages lie in one mapped file
  bool owned_ = true;
};

}  // namespace tenon

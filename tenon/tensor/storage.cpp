#include "tenon/tensor/storage.h"

#include <cstring>
#include <new>

#include "tenon/base/error.h"

namespace tenon {
namespace {
constexpr std::align_val_t alignment{64};
std::byte* allocate(size_t bytes) {
  require(bytes < size_t{1} << 47, "a tensor of ", bytes, " bytes is more than any memory holds");
  return static_cast<std::byte*>(::operator new(bytes ? bytes : 1, alignment));
}
}  // namespace

Storage::Storage(size_t bytes) : data_(allocate(bytes)), size_(bytes) {}

Storage::Storage(std::span<const std::byte> borrowed, std::shared_ptr<const void> owner)
    : data_(const_cast<std::byte*>(borrowed.data())), size_(borrowed.size()), owner_(std::move(owner)), owned_(false) {}

std::shared_ptr<Storage> Storage::lent(std::span<std::byte> bytes, std::shared_ptr<const void> owner) {
  auto out = std::make_shared<Storage>(std::span<const std::byte>(bytes), std::move(owner));
  out->lent_ = true;
  return out;
}

Storage::~Storage() {
  if (owned_) ::operator delete(data_, alignment);
}

std::byte* Storage::mutable_data() {
  if (!owned_ && !lent_) {
    std::byte* copy = allocate(size_);
    if (size_) std::memcpy(copy, data_, size_);
    data_ = copy;
    owned_ = true;
    owner_.reset();
  }
  return data_;
}

}  // namespace tenon

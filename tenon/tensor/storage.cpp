#include "tenon/tensor/storage.h"

#include <cstring>
#include <new>

#include "tenon/base/error.h"
#include "tenon/tensor/lent.h"

namespace tenon {
namespace {
constexpr std::align_val_t alignment{64};
std::byte* allocate(size_t bytes) {
  require(bytes < size_t{1} << 46, "a tensor of ", bytes, " bytes is more than any memory holds");
  return static_cast<std::byte*>(::operator new(bytes ? bytes : 1, alignment));
}

// The deleter of an owner that lets us write: how a storage knows lent bytes from borrowed ones.
struct Lender {
  std::function<void(void*)> release;
  void operator()(void* data) const {
    if (release) release(data);
  }
};
}  // namespace

Storage::Storage(size_t bytes) : data_(allocate(bytes)), size_(bytes) {}

Storage::Storage(std::span<const std::byte> borrowed, std::shared_ptr<const void> owner)
    : data_(const_cast<std::byte*>(borrowed.data())), size_(borrowed.size()), owner_(std::move(owner)), owned_(false) {}

Storage::~Storage() {
  if (owned_) ::operator delete(data_, alignment);
}

std::byte* Storage::mutable_data() {
  if (!owned_ && !std::get_deleter<Lender>(owner_)) {
    std::byte* copy = allocate(size_);
    if (size_) std::memcpy(copy, data_, size_);
    data_ = copy;
    owned_ = true;
    owner_.reset();
  }
  return data_;
}

std::shared_ptr<Storage> lent_storage(std::span<std::byte> bytes, std::function<void(void*)> release) {
  std::shared_ptr<const void> owner(static_cast<void*>(bytes.data()), Lender{std::move(release)});
  return std::make_shared<Storage>(std::span<const std::byte>(bytes), std::move(owner));
}

}  // namespace tenon

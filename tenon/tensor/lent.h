// Memory of the user's as a storage.
#pragma once
#include <functional>

#include "tenon/tensor/storage.h"

namespace tenon {

/// A storage over bytes that somebody else owns and lets us write: unlike borrowed ones they are not copied first.
/// `release`, where given, is called when the storage is gone.
std::shared_ptr<Storage> lent_storage(std::span<std::byte> bytes, std::function<void(void*)> release);

}  // namespace tenon

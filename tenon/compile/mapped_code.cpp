#include "tenon/compile/mapped_code.h"

#include <sys/mman.h>

#include <cstring>

#include "tenon/base/error.h"

namespace tenon::compile {

MappedCode::MappedCode(const NativeCode& code) : bytes_(code.bytes.size()), symbols_(code.kernels) {
  if (bytes_ == 0) return;
  memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(memory_ != MAP_FAILED, "no memory for ", bytes_, " bytes of code");
  std::memcpy(memory_, code.bytes.data(), bytes_);
  if (mprotect(memory_, bytes_, PROT_READ | PROT_EXEC) == 0) return;
  munmap(memory_, bytes_);
  fail("code cannot be made executable here");
}

MappedCode::~MappedCode() {
  if (memory_) munmap(memory_, bytes_);
}

KernelFunction MappedCode::function(size_t kernel) const {
  return reinterpret_cast<KernelFunction>(static_cast<std::byte*>(memory_) + symbols_[kernel].offset);
}

}  // namespace tenon::compile

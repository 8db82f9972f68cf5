#include "tools/tenon/memory.h"

#include <malloc.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <new>

#include "tenon/base/error.h"

namespace tenon::tool {
namespace {

std::atomic<int64_t> limit = 0;  // 0: nothing is counted
std::atomic<int64_t> used = 0;   // below 0 where what was made before is freed

void* allocated(std::size_t size, std::size_t alignment) {
  if (size == 0) size = 1;
  int64_t most = limit.load(std::memory_order_relaxed);
  if (most > 0 &&
      (size > static_cast<uint64_t>(most) || used.load(std::memory_order_relaxed) + static_cast<int64_t>(size) > most))
    return nullptr;
  void* made = nullptr;
  if (alignment <= alignof(std::max_align_t)) made = std::malloc(size);
  else if (size <= SIZE_MAX - alignment)
    made = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (most > 0 && made) used.fetch_add(static_cast<int64_t>(::malloc_usable_size(made)), std::memory_order_relaxed);
  return made;
}

void freed(void* memory) {
  if (memory && limit.load(std::memory_order_relaxed) > 0)
    used.fetch_sub(static_cast<int64_t>(::malloc_usable_size(memory)), std::memory_order_relaxed);
  std::free(memory);
}

void* allocated_or_thrown(std::size_t size, std::size_t alignment) {
  if (void* made = allocated(size, alignment)) return made;
  throw std::bad_alloc();
}

}  // namespace

void limit_memory(int64_t bytes) { limit = bytes; }
int64_t memory_limit() { return limit; }

int64_t parse_memory(const std::string& text) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  double factor = unit.empty() ? 1 : unit == "K" ? 0x1p10 : unit == "M" ? 0x1p20 : unit == "G" ? 0x1p30 : 0;
  double bytes = number * factor;
  require(error == std::errc() && bytes >= 1 && bytes < 0x1p62, "--max-memory: expected a number of bytes such as 2G, ",
          "512M or 1000000, got ", quoted(text));
  return static_cast<int64_t>(bytes);
}

}  // namespace tenon::tool

// Every allocation of the program passes here, whoever makes it: tensors, scratch of kernels, graphs.
void* operator new(std::size_t size) { return tenon::tool::allocated_or_thrown(size, 0); }
void* operator new[](std::size_t size) { return tenon::tool::allocated_or_thrown(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return tenon::tool::allocated_or_thrown(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return tenon::tool::allocated_or_thrown(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return tenon::tool::allocated(size, 0); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return tenon::tool::allocated(size, 0); }
void operator delete(void* memory) noexcept { tenon::tool::freed(memory); }
void operator delete[](void* memory) noexcept { tenon::tool::freed(memory); }
void operator delete(void* memory, std::size_t) noexcept { tenon::tool::freed(memory); }
void operator delete[](void* memory, std::size_t) noexcept { tenon::tool::freed(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { tenon::tool::freed(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { tenon::tool::freed(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { tenon::tool::freed(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { tenon::tool::freed(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { tenon::tool::freed(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept { tenon::tool::freed(memory); }

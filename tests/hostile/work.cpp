#include "tests/hostile/work.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<uint64_t> allocations = 0, bytes = 0, comparisons = 0;

void* counted(std::size_t size, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  bytes.fetch_add(size, std::memory_order_relaxed);
  if (size == 0) size = 1;
  void* made = alignment == 0 ? std::malloc(size)
                              : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (!made) throw std::bad_alloc();
  return made;
}
}  // namespace

tenon::Work tenon::work_done() { return {allocations, bytes, comparisons}; }

void* operator new(std::size_t size) { return counted(size, 0); }
void* operator new[](std::size_t size) { return counted(size, 0); }
void* operator new(std::size_t size, std::align_val_t align) { return counted(size, static_cast<std::size_t>(align)); }
void* operator new[](std::size_t size, std::align_val_t align) {
  return counted(size, static_cast<std::size_t>(align));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return counted(size, 0); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return counted(size, 0); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

// What clang's -fsanitize-coverage=trace-cmp calls; libFuzzer has its own, which is not linked here.
#if defined(TENON_COUNT_COMPARISONS)
extern "C" {
#define TENON_COMPARISON(name, type)                                                  \
  __attribute__((no_sanitize("all"))) void __sanitizer_cov_trace_##name(type, type) { \
    comparisons.fetch_add(1, std::memory_order_relaxed);                              \
  }
TENON_COMPARISON(cmp1, uint8_t)
TENON_COMPARISON(cmp2, uint16_t)
TENON_COMPARISON(cmp4, uint32_t)
TENON_COMPARISON(cmp8, uint64_t)
TENON_COMPARISON(const_cmp1, uint8_t)
TENON_COMPARISON(const_cmp2, uint16_t)
TENON_COMPARISON(const_cmp4, uint32_t)
TENON_COMPARISON(const_cmp8, uint64_t)
#undef TENON_COMPARISON
void __sanitizer_cov_trace_switch(uint64_t, uint64_t*) { comparisons.fetch_add(1, std::memory_order_relaxed); }
void __sanitizer_cov_trace_div4(uint32_t) {}
void __sanitizer_cov_trace_div8(uint64_t) {}
void __sanitizer_cov_trace_gep(uintptr_t) {}
void __sanitizer_cov_trace_pc_indir(uintptr_t) {}
void __sanitizer_cov_8bit_counters_init(uint8_t*, uint8_t*) {}
void __sanitizer_cov_pcs_init(const uintptr_t*, const uintptr_t*) {}
void __sanitizer_cov_trace_pc_guard(uint32_t*) {}
void __sanitizer_cov_trace_pc_guard_init(uint32_t*, uint32_t*) {}
}
#endif

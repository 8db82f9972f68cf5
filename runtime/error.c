#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "internal.h"

#ifndef TENON_VERSION
#define TENON_VERSION "unknown"
#endif

// Aligned: where thread-local memory ends up with no alignment at all, mold 1.10 may write a program that cannot be
// loaded.
static _Thread_local _Alignas(16) char message[512];

tenon_status tn_fail(tenon_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return status;
}

tenon_status tn_fail_memory(uint64_t bytes, const char* what) {
  return tn_fail(TENON_OUT_OF_MEMORY, "%s: no memory for %llu bytes", what, (unsigned long long)bytes);
}

const char* tenon_last_error(void) { return message; }

const char* tenon_runtime_version(void) { return TENON_VERSION; }

const char* tenon_status_name(tenon_status status) {
  switch (status) {
    case TENON_OK: return "ok";
    case TENON_INVALID_ARGUMENT: return "invalid argument";
    case TENON_INVALID_FILE: return "invalid file";
    case TENON_UNSUPPORTED: return "unsupported";
    case TENON_OUT_OF_MEMORY: return "out of memory";
    case TENON_IO: return "input or output failed";
    case TENON_CHECK_FAILED: return "check failed";
    case TENON_DAMAGED: return "state damaged";
    case TENON_BUSY: return "busy";
  }
  return "?";
}

static const struct {
  const char* name;
  unsigned char size;
} dtypes[TENON_DTYPE_COUNT] = {
    [TENON_BOOL] = {"bool", 1},
    [TENON_U8] = {"u8", 1},
    [TENON_I8] = {"i8", 1},
    [TENON_I16] = {"i16", 2},
    [TENON_I32] = {"i32", 4},
    [TENON_I64] = {"i64", 8},
    [TENON_U16] = {"u16", 2},
    [TENON_U32] = {"u32", 4},
    [TENON_U64] = {"u64", 8},
    [TENON_F16] = {"f16", 2},
    [TENON_BF16] = {"bf16", 2},
    [TENON_F32] = {"f32", 4},
    [TENON_F64] = {"f64", 8},
    [TENON_C32] = {"c32", 4},
    [TENON_C64] = {"c64", 8},
    [TENON_C128] = {"c128", 16},
    [TENON_F8_E4M3FN] = {"f8e4m3fn", 1},
    [TENON_F8_E5M2] = {"f8e5m2", 1},
    [TENON_F8_E4M3FNUZ] = {"f8e4m3fnuz", 1},
    [TENON_F8_E5M2FNUZ] = {"f8e5m2fnuz", 1},
    [TENON_F8_E8M0FNU] = {"f8e8m0fnu", 1},
};

size_t tenon_dtype_size(int32_t dtype) { return dtype >= 0 && dtype < TENON_DTYPE_COUNT ? dtypes[dtype].size : 0; }
const char* tenon_dtype_name(int32_t dtype) {
  return dtype >= 0 && dtype < TENON_DTYPE_COUNT ? dtypes[dtype].name : "?";
}

/* Large memory lies on huge pages where the system gives them: fewer misses of the processor's tables of pages, and its
   prefetching goes on across 4 KB. */
static void* malloc_allocate(void* context, size_t size, size_t alignment) {
  (void)context;
  enum { huge_page = 2 << 20 };
  const bool large = size >= 4 * (size_t)huge_page;
  void* memory = NULL;
  if (posix_memalign(&memory, large && alignment < huge_page ? huge_page : alignment, size) != 0) return NULL;
#ifdef MADV_HUGEPAGE
  if (large) madvise(memory, size / huge_page * huge_page, MADV_HUGEPAGE);
#endif
  return memory;
}
static void malloc_release(void* context, void* memory, size_t size) {
  (void)context;
  (void)size;
  free(memory);
}
const tenon_allocator tn_malloc = {NULL, malloc_allocate, malloc_release};

void* tn_allocate(const tenon_allocator* allocator, size_t size) {
  if (size > SIZE_MAX - TENON_ALIGNMENT) return NULL;
  return allocator->allocate(allocator->context, size ? tn_round_up(size, TENON_ALIGNMENT) : TENON_ALIGNMENT,
                             TENON_ALIGNMENT);
}
void tn_release(const tenon_allocator* allocator, void* memory, size_t size) {
  if (memory)
    allocator->release(allocator->context, memory, size ? tn_round_up(size, TENON_ALIGNMENT) : TENON_ALIGNMENT);
}

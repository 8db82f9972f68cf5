#include "tenon/templates/kernels.h"

#include <cstdlib>
#include <initializer_list>
#include <new>

// Vectors are passed only between functions that are always inlined, so their calling convention does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace tenon::templates {
namespace {

namespace portable {
#define TENON_TARGET
#define TENON_BYTES 16
#define TENON_ROWS 4
#define TENON_FMA_F32(a, b, c) ((a) * (b) + (c))
#define TENON_FMA_F64(a, b, c) ((a) * (b) + (c))
#include "tenon/templates/kernels_isa.h"
#undef TENON_TARGET
#undef TENON_BYTES
#undef TENON_ROWS
#undef TENON_FMA_F32
#undef TENON_FMA_F64
}  // namespace portable

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TENON_X86 1

namespace avx2 {
#define TENON_TARGET __attribute__((target("avx2,fma")))
#define TENON_BYTES 32
#define TENON_ROWS 6
#define TENON_FMA_F32(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#define TENON_FMA_F64(a, b, c) __builtin_ia32_vfmaddpd256(a, b, c)
#include "tenon/templates/kernels_isa.h"
#undef TENON_TARGET
#undef TENON_BYTES
#undef TENON_ROWS
#undef TENON_FMA_F32
#undef TENON_FMA_F64
}  // namespace avx2

namespace avx512 {
#define TENON_TARGET __attribute__((target("avx512f,avx512dq,avx2,fma")))
#define TENON_BYTES 64
#define TENON_ROWS 12
#define TENON_FMA_F32(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, static_cast<unsigned short>(-1), 4)
#define TENON_FMA_F64(a, b, c) __builtin_ia32_vfmaddpd512_mask(a, b, c, static_cast<unsigned char>(-1), 4)
#include "tenon/templates/kernels_isa.h"
#undef TENON_TARGET
#undef TENON_BYTES
#undef TENON_ROWS
#undef TENON_FMA_F32
#undef TENON_FMA_F64
}  // namespace avx512
#endif

template <class T>
Kernels<T> choose() {
  for (Isa isa : {Isa::avx512, Isa::avx2})
    if (Kernels<T> table = kernels_of<T>(isa); table.rows != 0) return table;
  return kernels_of<T>(Isa::portable);
}

constexpr std::int64_t line = 64, kept_bytes = std::int64_t{32} << 20;

void release(void* data) { ::operator delete (data, std::align_val_t{line}); }

struct Slots {
  struct Slot {
    void* data = nullptr;
    std::int64_t size = 0;
    bool used = false;
  } slot[4];
  ~Slots() {
    for (Slot& s : slot) release(s.data);
  }
};
thread_local Slots slots;

void* allocate(std::int64_t bytes) { return ::operator new (static_cast<std::size_t>(bytes), std::align_val_t{line}); }

}  // namespace

template <class T>
Kernels<T> kernels_of(Isa isa) {
  switch (isa) {
    case Isa::portable: return portable::table<T>();
#ifdef TENON_X86
    case Isa::avx2:
      __builtin_cpu_init();
      if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2::table<T>();
      return {};
    case Isa::avx512:
      __builtin_cpu_init();
      if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return avx512::table<T>();
      return {};
#else
    case Isa::avx2:
    case Isa::avx512: return {};
#endif
  }
  return {};
}
template Kernels<float> kernels_of<float>(Isa);
template Kernels<double> kernels_of<double>(Isa);

template <>
const Kernels<float>& kernels<float>() {
  static const Kernels<float> table = choose<float>();
  return table;
}
template <>
const Kernels<double>& kernels<double>() {
  static const Kernels<double> table = choose<double>();
  return table;
}

Scratch::Scratch(std::int64_t bytes) : data_(nullptr), slot_(-1) {
  bytes = (bytes < 1 ? 1 : bytes) + line - 1;
  bytes -= bytes % line;
  int free_slot = -1;
  for (int i = 0; i < 4; ++i) {
    Slots::Slot& s = slots.slot[i];
    if (s.used) continue;
    // The least that is great enough, else the greatest, to be replaced.
    bool fits = s.size >= bytes;
    if (free_slot < 0) {
      free_slot = i;
      continue;
    }
    std::int64_t best = slots.slot[free_slot].size;
    if (fits ? best < bytes || s.size < best : best < bytes && s.size > best) free_slot = i;
  }
  if (free_slot < 0 || bytes > kept_bytes) {
    data_ = allocate(bytes);
    return;
  }
  Slots::Slot& s = slots.slot[free_slot];
  if (s.size < bytes) {
    release(s.data);
    s = {};
    s.data = allocate(bytes);
    s.size = bytes;
  }
  s.used = true;
  slot_ = free_slot;
  data_ = s.data;
}

Scratch::~Scratch() {
  if (slot_ < 0) release(data_);
  else slots.slot[slot_].used = false;
}

}  // namespace tenon::templates

#include "bench/limits.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "tenon/base/parallel.h"

namespace tenon::bench {
namespace {

using Int = std::int64_t;
typedef float Lanes __attribute__((vector_size(64)));

#if defined(__x86_64__)
__attribute__((target("avx512f"))) void multiply_add_512(Int rounds) {
  asm volatile(
      "1:\n"
      "vfmadd231ps %%zmm16, %%zmm17, %%zmm0\n vfmadd231ps %%zmm16, %%zmm17, %%zmm1\n"
      "vfmadd231ps %%zmm16, %%zmm17, %%zmm2\n vfmadd231ps %%zmm16, %%zmm17, %%zmm3\n"
      "vfmadd231ps %%zmm16, %%zmm17, %%zmm4\n vfmadd231ps %%zmm16, %%zmm17, %%zmm5\n"
      "vfmadd231ps %%zmm16, %%zmm17, %%zmm6\n vfmadd231ps %%zmm16, %%zmm17, %%zmm7\n"
      "vfmadd231ps %%zmm16, %%zmm17, %%zmm8\n vfmadd231ps %%zmm16, %%zmm17, %%zmm9\n"
      "dec %0\n jnz 1b\n"
      : "+r"(rounds)
      :
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "cc");
}
__attribute__((target("avx2,fma"))) void multiply_add_256(Int rounds) {
  asm volatile(
      "1:\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm0\n vfmadd231ps %%ymm14, %%ymm15, %%ymm1\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm2\n vfmadd231ps %%ymm14, %%ymm15, %%ymm3\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm4\n vfmadd231ps %%ymm14, %%ymm15, %%ymm5\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm6\n vfmadd231ps %%ymm14, %%ymm15, %%ymm7\n"
      "vfmadd231ps %%ymm14, %%ymm15, %%ymm8\n vfmadd231ps %%ymm14, %%ymm15, %%ymm9\n"
      "dec %0\n jnz 1b\n"
      : "+r"(rounds)
      :
      : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "cc");
}
#endif

/// Eight streams, fetched ahead.
void read_streams(const float* from, Int stream) {
  for (Int i = 0; i < stream; i += 16)
    for (Int s = 0; s < 8; ++s) {
      const float* at = from + s * stream + i;
      __builtin_prefetch(at + 512, 0, 2);
      asm volatile("" ::"r"(*reinterpret_cast<const volatile Int*>(at)));  // a line is read whole
    }
}

/// A piece of memory beyond every cache, in huge pages where the system gives them.
class Large {
 public:
  static constexpr Int floats = Int{64} << 20;
  Large() {
    void* got = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (got == MAP_FAILED) std::abort();
    data = static_cast<float*>(got);
    madvise(got, bytes, MADV_HUGEPAGE);
    parallel::parallel_for(floats, floats / 64, [&](Int lo, Int hi) { std::fill(data + lo, data + hi, 1.0f); });
  }
  ~Large() { munmap(data, bytes); }
  float* data;

 private:
  static constexpr size_t bytes = floats * sizeof(float);
};

/// body(lo, hi) on every thread, each with an equal part of [0, count).
template <class Body>
void on_threads(Int count, Body body) {
  const Int threads = parallel::threads(), each = count / threads;
  parallel::parallel_for(threads, 1, [&](Int lo, Int hi) {
    for (Int t = lo; t < hi; ++t) body(t * each, (t + 1) * each);
  });
}

}  // namespace

double peak_flops([[maybe_unused]] bool wide) {
#if defined(__x86_64__)
  constexpr Int rounds = 20000;
  auto all = [&](auto work) {
    return best([&] { on_threads(parallel::threads(), [&](Int, Int) { work(rounds); }); }, 0.02);
  };
  const double each = 10.0 * rounds * parallel::threads();
  if (wide && __builtin_cpu_supports("avx512f")) return 32 * each / all(multiply_add_512);
  if (__builtin_cpu_supports("fma")) return 16 * each / all(multiply_add_256);
#endif
  return 0;
}

double read_bandwidth() {
  const Large memory;
  const double seconds = best(
      [&] { on_threads(Large::floats, [&](Int lo, Int hi) { read_streams(memory.data + lo, (hi - lo) / 8); }); }, 0.3);
  return static_cast<double>(Large::floats) * 4 / seconds;
}

double update_bandwidth() {
  const Large memory;
  const double seconds = best(
      [&] {
        on_threads(Large::floats, [&](Int lo, Int hi) {
          const Int stream = (hi - lo) / 4;
          for (Int i = 0; i < stream; i += 16)
            for (Int s = 0; s < 4; ++s) {
              float* at = memory.data + lo + s * stream + i;
              *reinterpret_cast<Lanes*>(at) = *reinterpret_cast<const Lanes*>(at) * 1.0001f;
            }
        });
      },
      0.3);
  return static_cast<double>(Large::floats) * 8 / seconds;
}

}  // namespace tenon::bench

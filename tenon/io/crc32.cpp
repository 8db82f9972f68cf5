#include "tenon/io/crc32.h"

#include <array>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tenon {

namespace {

constexpr uint32_t polynomial = 0xEDB88320;  // bits reversed: the highest bit stands for x^0

constexpr uint32_t times_x(uint32_t r) { return (r >> 1) ^ ((r & 1) ? polynomial : 0); }

// tables[k][b]: the remainder of byte b followed by k zero bytes.
constexpr auto tables = [] {
  std::array<std::array<uint32_t, 256>, 16> t{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t r = b;
    for (int i = 0; i < 8; ++i) r = times_x(r);
    t[0][b] = r;
  }
  for (size_t k = 1; k < 16; ++k)
    for (size_t b = 0; b < 256; ++b) t[k][b] = (t[k - 1][b] >> 8) ^ t[0][t[k - 1][b] & 255];
  return t;
}();

// Takes and gives the register as it stands between bytes, without the inversions at start and end.
uint32_t step(uint32_t crc, const unsigned char* p, size_t size) {
  for (; size >= 16; p += 16, size -= 16) {
    uint32_t first;
    std::memcpy(&first, p, 4);
    crc ^= first;
    uint32_t next =
        tables[15][crc & 255] ^ tables[14][crc >> 8 & 255] ^ tables[13][crc >> 16 & 255] ^ tables[12][crc >> 24];
    for (size_t i = 4; i < 16; ++i) next ^= tables[15 - i][p[i]];
    crc = next;
  }
  for (; size > 0; ++p, --size) crc = (crc >> 8) ^ tables[0][(crc ^ *p) & 255];
  return crc;
}

#ifdef __x86_64__

// x^n modulo the polynomial, as the multiplier that carries a 64-bit half n bits forward.
constexpr uint64_t power(int n) {
  uint32_t r = 0x80000000;
  for (int i = 0; i < n; ++i) r = times_x(r);
  return uint64_t{r} << 1;
}

__attribute__((target("pclmul,sse4.1"))) inline __m128i fold(__m128i a, __m128i multipliers, __m128i next) {
  __m128i low = _mm_clmulepi64_si128(a, multipliers, 0x00);
  __m128i high = _mm_clmulepi64_si128(a, multipliers, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// Four 16-byte lanes are carried forward over 64 bytes at a time, then joined to one: 16 bytes with the same remainder
// as all that was read, which the tables finish. Needs at least 64 bytes.
__attribute__((target("pclmul,sse4.1"))) uint32_t step_folding(uint32_t crc, const unsigned char* p, size_t size) {
  constexpr uint64_t far_low = power(4 * 128 + 32), far_high = power(4 * 128 - 32);
  constexpr uint64_t near_low = power(128 + 32), near_high = power(128 - 32);
  const __m128i far = _mm_set_epi64x(static_cast<int64_t>(far_high), static_cast<int64_t>(far_low));
  const __m128i near = _mm_set_epi64x(static_cast<int64_t>(near_high), static_cast<int64_t>(near_low));
  auto at = [](const unsigned char* q) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(q)); };
  __m128i a = _mm_xor_si128(at(p), _mm_cvtsi32_si128(static_cast<int>(crc))), b = at(p + 16), c = at(p + 32),
          d = at(p + 48);
  for (p += 64, size -= 64; size >= 64; p += 64, size -= 64) {
    a = fold(a, far, at(p));
    b = fold(b, far, at(p + 16));
    c = fold(c, far, at(p + 32));
    d = fold(d, far, at(p + 48));
  }
  a = fold(fold(fold(a, near, b), near, c), near, d);
  for (; size >= 16; p += 16, size -= 16) a = fold(a, near, at(p));
  unsigned char rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), a);
  return step(step(0, rest, 16), p, size);
}

const bool can_fold = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");

#endif

const unsigned char* start(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

uint32_t detail::crc32_by_tables(std::span<const std::byte> bytes, uint32_t before) {
  return ~step(~before, start(bytes), bytes.size());
}

uint32_t crc32(std::span<const std::byte> bytes, uint32_t before) {
#ifdef __x86_64__
  if (can_fold && bytes.size() >= 64) return ~step_folding(~before, start(bytes), bytes.size());
#endif
  return detail::crc32_by_tables(bytes, before);
}

}  // namespace tenon

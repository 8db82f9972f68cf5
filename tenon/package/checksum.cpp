#include "tenon/package/checksum.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <thread>

namespace tenon::package {

namespace {
// Odd constants with bits spread evenly: fractions of square roots of primes.
constexpr uint64_t multiplier = 0xbb67ae8584caa73bull, finisher = 0x3c6ef372fe94f82bull;
constexpr std::array<uint64_t, 4> offsets = {0x6a09e667f3bcc909ull, 0xa54ff53a5f1d36f1ull, 0x510e527fade682d1ull,
                                             0x9b05688c2b3e6c1full};

uint64_t word_at(const std::byte* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}
uint64_t mix(uint64_t state, uint64_t word) { return std::rotl((state ^ word) * multiplier, 29); }
uint64_t finish(uint64_t state) {
  state = (state ^ state >> 32) * finisher;
  return (state ^ state >> 29) * multiplier ^ state >> 31;
}
}  // namespace

uint64_t checksum(std::span<const std::byte> bytes, uint64_t seed) {
  std::array<uint64_t, 4> lanes;  // four chains, so that the multiplications overlap
  for (size_t i = 0; i < 4; ++i) lanes[i] = finish(seed + offsets[i]);
  size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32)
    for (size_t i = 0; i < 4; ++i) lanes[i] = mix(lanes[i], word_at(bytes.data() + at + 8 * i));
  std::array<std::byte, 32> rest{};
  std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end(), rest.begin());
  uint64_t state = bytes.size();
  for (size_t i = 0; i < 4; ++i) state = finish(mix(state, mix(lanes[i], word_at(rest.data() + 8 * i))));
  return state;
}

std::vector<uint64_t> block_checksums(std::span<const std::byte> bytes) {
  std::vector<uint64_t> out((bytes.size() + checksum_block - 1) / checksum_block);
  std::atomic<size_t> next = 0;
  auto take_blocks = [&] {
    for (size_t i; (i = next++) < out.size();) {
      size_t start = i * checksum_block;
      out[i] = checksum(bytes.subspan(start, std::min<size_t>(checksum_block, bytes.size() - start)), i);
    }
  };
  std::vector<std::jthread> helpers;
  size_t wanted = std::min<size_t>(out.size(), std::thread::hardware_concurrency());
  for (size_t i = 1; i < wanted; ++i) helpers.emplace_back(take_blocks);
  take_blocks();
  helpers.clear();
  return out;
}

}  // namespace tenon::package

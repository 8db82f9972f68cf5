#include "tenon/package/checksum.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace tenon::package {

uint64_t checksum(std::span<const std::byte> bytes, uint64_t seed) {
  return tn_checksum(bytes.data(), bytes.size(), seed);
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

// A fast 64-bit checksum against damage of files (not against forgery), and the checksums of an artifact's weights.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/verify.h"

namespace tenon::package {

uint64_t checksum(std::span<const std::byte> bytes, uint64_t seed);

/// Of each block of 16 MiB, so that they can be made and checked on all threads; the last block may be shorter.
constexpr uint64_t checksum_block = TN_CHECKSUM_BLOCK;
std::vector<uint64_t> block_checksums(std::span<const std::byte> bytes);

}  // namespace tenon::package

#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon {

/// The CRC-32 of zip and gzip, continued from `before`. Many gigabytes a second where the processor multiplies
/// carry-less.
uint32_t crc32(std::span<const std::byte> bytes, uint32_t before = 0);

namespace detail {
uint32_t crc32_by_tables(std::span<const std::byte> bytes, uint32_t before = 0);
}

}  // namespace tenon

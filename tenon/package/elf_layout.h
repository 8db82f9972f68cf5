// Where everything of an artifact lies in the file, and the bytes of all of it but the weights. File offsets and
// addresses are equal.
#pragma once
#include <span>
#include <vector>

#include "tenon/package/artifact_writer.h"

namespace tenon::package {

struct ElfLayout {
  std::vector<std::byte> head;  // the file up to the weights; a multiple of 4096
  uint64_t weights_size = 0;
  uint64_t checksums_offset = 0, checksums_size = 0;
  uint64_t tables_offset = 0, tables_size = 0, code_offset = 0, code_size = 0;
  uint64_t build_id_offset = 0;
};
constexpr size_t build_id_size = 16;

ElfLayout lay_out(const ArtifactParts& parts);

/// What stands in .tenon.checksums before and behind the checksums of the weights. Those of tables and code are there
/// beside the build-id because they still hold when strip has laid out the rest of the file anew.
struct ChecksumHeader {
  uint64_t block = 0, count = 0;
};
struct PartChecksums {
  uint64_t tables = 0, code = 0;
  bool operator==(const PartChecksums&) const = default;
};
PartChecksums part_checksums(std::span<const std::byte> tables, std::span<const std::byte> code);

/// Two checksums over code, tables and the checksums of the weights.
std::vector<std::byte> build_id(std::span<const std::byte> segments, uint64_t build_id_offset,
                                std::span<const std::byte> checksums);

}  // namespace tenon::package

#include "tenon/package/artifact_writer.h"

#include <algorithm>
#include <cstring>

#include "tenon/base/file.h"
#include "tenon/package/checksum.h"
#include "tenon/package/elf_layout.h"

namespace tenon::package {

namespace {
/// Checksums and build-id into the head, once the weights are there.
void seal(ElfLayout& layout, std::span<const std::byte> weights) {
  std::vector<uint64_t> sums = block_checksums(weights);
  ChecksumHeader header{checksum_block, sums.size()};
  std::byte* at = layout.head.data() + layout.checksums_offset;
  std::memcpy(at, &header, sizeof header);
  if (!sums.empty()) std::memcpy(at + sizeof header, sums.data(), 8 * sums.size());
  std::span<const std::byte> head = layout.head;
  PartChecksums parts = part_checksums(head.subspan(layout.tables_offset, layout.tables_size),
                                       head.subspan(layout.code_offset, layout.code_size));
  std::memcpy(at + sizeof header + 8 * sums.size(), &parts, sizeof parts);
  std::vector<std::byte> id = build_id(head.first(layout.checksums_offset), layout.build_id_offset,
                                       head.subspan(layout.checksums_offset, layout.checksums_size));
  std::copy(id.begin(), id.end(), layout.head.begin() + static_cast<std::ptrdiff_t>(layout.build_id_offset));
}
}  // namespace

struct ArtifactWriter::Layout : ElfLayout {};

ArtifactWriter::ArtifactWriter(const std::string& path, ArtifactParts parts)
    : layout_(new Layout{lay_out(parts)}), file_(new AtomicFile(path)) {
  file_->write(layout_->head);
  weights_ = file_->write_mapped(layout_->weights_size);
}

ArtifactWriter::~ArtifactWriter() = default;

void ArtifactWriter::commit() {
  seal(*layout_, weights_);
  file_->overwrite(0, layout_->head);
  weights_ = {};
  file_->commit();
}

std::vector<std::byte> artifact_bytes(ArtifactParts parts, const std::function<void(std::span<std::byte>)>& fill) {
  ElfLayout layout = lay_out(parts);
  std::vector<std::byte> out(layout.head.size() + layout.weights_size);
  std::span<std::byte> weights = std::span(out).subspan(layout.head.size());
  if (fill) fill(weights);
  seal(layout, weights);
  std::copy(layout.head.begin(), layout.head.end(), out.begin());
  return out;
}

}  // namespace tenon::package

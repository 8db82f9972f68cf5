#include "tenon/package/artifact.h"

#include <algorithm>
#include <cstring>

#include "runtime/verify.h"
#include "tenon/base/error.h"
#include "tenon/base/file.h"
#include "tenon/package/checksum.h"
#include "tenon/package/elf_layout.h"

namespace tenon::package {

namespace {
constexpr std::string_view damaged_code = ": its code or its tables are damaged; compile the program again";
}  // namespace

Artifact::Artifact() : tables_(new tn_tables{}), image_(new tn_image{}) {}
Artifact::Artifact(Artifact&&) noexcept = default;
Artifact::~Artifact() = default;

Artifact Artifact::open(const std::string& path) {
  auto file = MappedFile::open(path);
  Artifact artifact = parse(file->bytes(), path);
  artifact.owner_ = file;
  return artifact;
}

Artifact Artifact::parse(std::span<const std::byte> bytes, const std::string& name) {
  Artifact artifact;
  artifact.name_ = name;
  artifact.bytes_ = bytes;
  tn_source source{reinterpret_cast<const unsigned char*>(bytes.data()), -1, bytes.size()};
  auto check = [&](tenon_status status) { require(status == TENON_OK, quoted(name, 400), ": ", tenon_last_error()); };
  check(tn_image_verify(&source, artifact.image_.get()));
  artifact.tables_memory_.resize((artifact.image_->tables_size + 7) / 8);
  check(tn_image_read_tables(&source, artifact.image_.get(), artifact.tables_memory_.data(), artifact.tables_.get()));
  artifact.weights_ = bytes.subspan(artifact.image_->weights_offset, artifact.image_->weights_size);
  return artifact;
}

std::string_view Artifact::string(uint32_t position) const { return tables_->strings + position; }
std::string_view Artifact::producer() const { return string(tables_->header->producer); }

std::string_view Artifact::metadata(std::string_view key) const {
  for (uint64_t i = 0; i < tables_->header->metadata.count; ++i)
    if (string(tables_->metadata[i].key) == key) return string(tables_->metadata[i].value);
  return {};
}

std::string Artifact::build_id() const {
  std::string out;
  for (uint32_t i = 0; i < image_->build_id_size; ++i)
    for (int shift : {4, 0}) out += "0123456789abcdef"[image_->build_id[i] >> shift & 15];
  return out;
}

std::vector<std::string> Artifact::target_names() const {
  static const char* const names[TENON_TARGET_COUNT] = {"portable", "x86-64-v3", "x86-64-v4"};
  std::vector<std::string> out;
  for (int i = 0; i < TENON_TARGET_COUNT; ++i)
    if (tables_->header->targets >> i & 1) out.emplace_back(names[i]);
  return out;
}

void Artifact::verify_code() const {
  std::span<const std::byte> stored = bytes_.subspan(image_->checksums_offset, image_->checksums_size);
  uint64_t blocks = (weights_.size() + checksum_block - 1) / checksum_block;
  if (stored.size() != sizeof(ChecksumHeader) + 8 * blocks + sizeof(PartChecksums)) return;
  std::span<const std::byte> code;
  for (const tn_load& load : std::span(image_->loads).first(image_->load_count))
    if (load.executable) code = bytes_.subspan(load.offset, load.size);
  PartChecksums wanted;
  std::memcpy(&wanted, stored.last(sizeof wanted).data(), sizeof wanted);
  require(wanted == part_checksums(bytes_.subspan(image_->tables_offset, image_->tables_size), code),
          quoted(name_, 400), damaged_code);
}

void Artifact::verify_checksums() const {
  ChecksumHeader header;
  std::span<const std::byte> stored = bytes_.subspan(image_->checksums_offset, image_->checksums_size);
  std::vector<uint64_t> sums = block_checksums(weights_);
  require(stored.size() >= sizeof header, quoted(name_, 400),
          ": it has no checksums; it was not written by tenon compile");
  std::memcpy(&header, stored.data(), sizeof header);
  require(header.block == checksum_block && header.count == sums.size() &&
              stored.size() == sizeof header + 8 * sums.size() + sizeof(PartChecksums),
          quoted(name_, 400), ": its checksums are of another kind than this version of Tenon makes");
  verify_code();
  for (size_t i = 0; i < sums.size(); ++i) {
    uint64_t sum;
    std::memcpy(&sum, stored.data() + sizeof header + 8 * i, sizeof sum);
    require(sum == sums[i], quoted(name_, 400), ": the weights are damaged between byte ", i * checksum_block, " and ",
            std::min<uint64_t>((i + 1) * checksum_block, weights_.size()), " of them; compile the program again");
  }
  // Where the build-id stands follows from the layout: its bytes appear once in the first page.
  std::span<const std::byte> head = bytes_.first(image_->checksums_offset);
  auto id = std::as_bytes(std::span(image_->build_id, image_->build_id_size));
  auto at = std::search(head.begin(), head.end(), id.begin(), id.end());
  require(image_->build_id_size == build_id_size && at != head.end(), quoted(name_, 400),
          ": it has no build-id of Tenon's");
  std::vector<std::byte> expected = tenon::package::build_id(head, static_cast<uint64_t>(at - head.begin()), stored);
  require(std::equal(id.begin(), id.end(), expected.begin()), quoted(name_, 400), damaged_code);
}

bool looks_like_elf(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), "\177ELF", 4) == 0;
}

}  // namespace tenon::package

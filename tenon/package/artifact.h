// Reads an artifact without executing any of it: everything is validated (runtime/verify.h) before it is handed out.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/abi.h"

struct tn_tables;
struct tn_image;

namespace tenon::package {

class Artifact {
 public:
  /// A malformed file is an Error with one sentence.
  static Artifact open(const std::string& path);
  /// The bytes are borrowed. `name` is for messages.
  static Artifact parse(std::span<const std::byte> bytes, const std::string& name);
  Artifact(Artifact&&) noexcept;
  ~Artifact();

  const tn_tables& tables() const { return *tables_; }
  const tn_image& image() const { return *image_; }
  std::string_view string(uint32_t position) const;
  /// Empty if there is none.
  std::string_view metadata(std::string_view key) const;
  std::string build_id() const;  // hexadecimal
  std::string_view producer() const;
  std::span<const std::byte> weights() const { return weights_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::vector<std::string> target_names() const;

  /// Reads everything and compares it with the checksums. Throws Error where the file was damaged.
  void verify_checksums() const;
  /// The same of tables and code alone, which takes no time, and where the file has their checksums: before it is run.
  void verify_code() const;

 private:
  Artifact();
  std::string name_;
  std::shared_ptr<const void> owner_;  // the mapping, which outlives a moved Artifact
  std::span<const std::byte> bytes_, weights_;
  std::vector<uint64_t> tables_memory_;
  std::unique_ptr<tn_tables> tables_;
  std::unique_ptr<tn_image> image_;
};

bool looks_like_elf(std::span<const std::byte> bytes);

/// Inputs, outputs, state, targets, sizes, and steps by kind: what `tenon show` prints.
std::string to_text(const Artifact& artifact);
/// The same as one JSON object.
std::string to_json(const Artifact& artifact);

}  // namespace tenon::package

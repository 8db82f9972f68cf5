// Writes an artifact: one ELF shared object with code, tables and weights, as docs/artifact.md describes. The same
// parts give the same bytes. A file appears whole or not at all.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tenon/package/tables.h"

namespace tenon {
class AtomicFile;
}

namespace tenon::package {

struct CodeSymbol {
  std::string name;
  uint64_t offset = 0, size = 0;  // in the image
};
/// Position-independent code and its constants, for one target: generated kernels, or a family of the kernel library.
struct CodeImage {
  tenon_target target = TENON_TARGET_X86_64_V3;
  std::vector<std::byte> bytes;
  std::vector<CodeSymbol> symbols;
};

/// The functions of the tables are looked up among the symbols by name, for each target that an image is for.
struct ArtifactParts {
  std::string soname = "model.so";
  Tables tables;
  std::vector<CodeImage> code;
};

class ArtifactWriter {
 public:
  ArtifactWriter(const std::string& path, ArtifactParts parts);
  ~ArtifactWriter();
  ArtifactWriter(const ArtifactWriter&) = delete;
  ArtifactWriter& operator=(const ArtifactWriter&) = delete;

  /// The weights, zero: memory of the file itself, to be filled by any thread before commit().
  std::span<std::byte> weights() const { return weights_; }
  void commit();

 private:
  struct Layout;
  std::unique_ptr<Layout> layout_;
  std::unique_ptr<AtomicFile> file_;
  std::span<std::byte> weights_;
};

/// The same in memory. `fill` gets the weights.
std::vector<std::byte> artifact_bytes(ArtifactParts parts, const std::function<void(std::span<std::byte>)>& fill);

}  // namespace tenon::package

// A .pt2 file as PyTorch 2.9 and later write it: a zip archive with one root folder, JSON, and raw payloads.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/base/file.h"
#include "tenon/export/exported_program.h"
#include "tenon/export/serde/graph_reader.h"
#include "tenon/io/zip.h"

namespace tenon::serde {

/// Held by shared_ptr: tensors lie in the mapping, and sample inputs are read when asked for.
class Archive {
 public:
  /// Opens the file and refuses what is not a PT2 archive, saying what it is where that can be told.
  static std::shared_ptr<const Archive> open(const std::string& path);

  const std::string& path() const { return file_->path(); }
  const std::string& model() const { return model_; }
  const ZipArchive& zip() const { return zip_; }
  /// What everything made from the file takes from: entries, JSON, pickles, copies, graphs.
  Budget& budget() const { return *budget_; }
  /// By the name under the root folder; null where there is none.
  const ZipEntry* find(std::string_view name) const { return zip_.find(root_ + std::string(name)); }
  const ZipEntry& at(std::string_view name) const;
  std::string_view content(std::string_view name) const { return zip_.content(at(name)); }
  JsonDocument json(std::string_view name) const;
  /// Entries in the folder, by the names under it.
  std::vector<std::string> names_in(std::string_view folder) const;

 private:
  Archive(std::shared_ptr<const MappedFile> file, std::unique_ptr<Budget> budget, ZipArchive zip)
      : file_(std::move(file)), budget_(std::move(budget)), zip_(std::move(zip)) {}
  void check_container();
  void check_zip_version(std::string_view version) const;

  std::shared_ptr<const MappedFile> file_;
  std::unique_ptr<Budget> budget_;
  ZipArchive zip_;
  std::string root_;  // with the slash
  std::string model_;
};

enum class PayloadFolder { weights, constants };

/// Tensors over the mapped file; those that share a payload share one storage. The bytes are not read: a CRC over 100
/// MB would be all the time it takes to open the file. The entries used are added to `unchecked`.
std::vector<NamedTensor> read_payloads(const std::shared_ptr<const Archive>& archive, PayloadFolder folder,
                                       ReadContext& context, std::vector<const ZipEntry*>& unchecked);

}  // namespace tenon::serde

// A .pt2 file: a zip archive that holds a program as JSON, its weights and constants, sample inputs and files of the
// user. Where these lie depends on the release that wrote it; see Container.
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

enum class Container : uint8_t {
  flat,     // PyTorch 2.4 to 2.7: no root folder; weights and constants are one torch.save file each
  pickled,  // 2.8: a root folder and models by name; weights and constants as before
  raw,      // 2.9 and later: one entry per storage, described by JSON
};

enum class PayloadFolder { weights, constants };

/// Held by shared_ptr: tensors lie in the mapping, and sample inputs are read when asked for.
class Archive {
 public:
  /// Opens the file and refuses what is no exported program, saying what it is where that can be told. Of several
  /// programs the one called `model` is meant; without a name, the one that torch.export.load would read.
  static std::shared_ptr<const Archive> open(const std::string& path, std::string_view model = {});

  const std::string& path() const { return file_->path(); }
  Container container() const { return container_; }
  const std::string& model() const { return model_; }
  std::string program_entry() const;
  std::string samples_entry() const;
  std::string pickled_entry(PayloadFolder folder) const;  // of a flat or pickled container
  std::string_view extra_folder() const;
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
  void check_flat(std::string_view model);
  void check_container(std::string_view model);
  void choose_model(std::string_view wanted);
  void check_zip_version(std::string_view version) const;

  std::shared_ptr<const MappedFile> file_;
  std::unique_ptr<Budget> budget_;
  ZipArchive zip_;
  Container container_ = Container::raw;
  std::string root_;  // with the slash; empty where the container is flat
  std::string model_;
};

/// Tensors over the mapped file; those that share a payload share one storage. The bytes are not read: a CRC over 100
/// MB would be all the time it takes to open the file. The entries used are added to `unchecked`, pickled ones to
/// `opaque`.
std::vector<NamedTensor> read_payloads(const std::shared_ptr<const Archive>& archive, PayloadFolder folder,
                                       ReadContext& context, std::vector<const ZipEntry*>& unchecked,
                                       std::vector<OpaquePayload>& opaque);

/// The same of a torch.save file, as PyTorch wrote up to 2.8; its checks are added to `checks`. Custom objects in it
/// are added to `opaque` in the form that later releases have for them.
std::vector<NamedTensor> read_pickled_payloads(const std::shared_ptr<const Archive>& archive, PayloadFolder folder,
                                               std::vector<std::function<void()>>& checks,
                                               std::vector<OpaquePayload>& opaque);

}  // namespace tenon::serde

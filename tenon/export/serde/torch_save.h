// A file written by torch.save inside a .pt2: sample inputs, and the weights of files older than PyTorch 2.9. Its
// pickle is read as inert data: nothing that it names is imported or called, and only the few calls that make a plain
// tensor mean something.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tenon/export/serde/archive.h"
#include "tenon/io/pickle.h"
#include "tenon/tensor/tensor.h"

namespace tenon::serde {

class TorchSave {
 public:
  /// Opens the entry `name` of the archive; `what` names its tensors in messages: "the sample inputs".
  TorchSave(std::shared_ptr<const Archive> archive, std::string_view name, std::string what);

  PickleValue root() const { return pickle_->root(); }

  struct Pickled {
    Tensor tensor;
    bool is_parameter = false;
  };
  /// The tensor that this value rebuilds; those of one storage share it. An error for any other value.
  Pickled tensor(PickleValue value);

  /// Storages that lie in the mapped file are not read when handed out; this compares all of them with their CRCs.
  std::function<void()> check() const;

 private:
  // Kept as long as a tensor lies in it.
  struct Contents {
    std::shared_ptr<const Archive> archive;
    ZipArchive zip;
    std::string root;
  };
  Pickled rebuilt(PickleValue function, PickleValue args);
  Tensor plain(PickleValue args, std::optional<DType> dtype);
  std::shared_ptr<Storage> storage_of(PickleValue key);
  void check_flags(PickleValue args, size_t at) const;

  std::string what_;
  std::shared_ptr<const Contents> contents_;
  std::optional<PickleDocument> pickle_;
  std::map<std::string, std::shared_ptr<Storage>, std::less<>> storages_;
  std::vector<const ZipEntry*> unchecked_;
};

}  // namespace tenon::serde

#include <functional>

#include "tenon/export/serde/torch_save.h"

namespace tenon::serde {

// A dict, or collections.OrderedDict() with pairs added and perhaps an attribute _metadata, which says nothing here.
std::vector<NamedTensor> read_pickled_payloads(const std::shared_ptr<const Archive>& archive, PayloadFolder folder,
                                               std::vector<std::function<void()>>& checks) {
  std::string name = archive->pickled_entry(folder);
  std::string what = folder == PayloadFolder::weights ? "the weights" : "the constants";
  if (archive->at(name).size == 0) return {};  // a program without any
  TorchSave file(archive, name, what);
  PickleValue root = file.root();
  bool ordered = root.is_call("collections", "OrderedDict") && root.args().size() == 0;
  root.require(root.is(PickleKind::dict) || ordered, "expected a dict of ", what, ", found ", root.describe());
  std::vector<NamedTensor> out;
  if (ordered && root.size() == 0) return out;
  root.require(root.is(PickleKind::dict) || root.has_pairs(), "expected a dict of ", what, ", found a list in it");
  for (size_t i = 0; i < root.size(); ++i) {
    auto [key, value] = root.pair(i);
    key.require(key.is(PickleKind::string), "expected the name of a tensor of ", what, ", found ", key.describe());
    value.require(value.is(PickleKind::call), "expected the tensor ", quoted(key.as_string()), " in ", what, ", found ",
                  value.describe());
    TorchSave::Pickled pickled = file.tensor(value);
    out.push_back({std::string(key.as_string()), std::move(pickled.tensor), pickled.is_parameter});
  }
  checks.push_back(file.check());
  return out;
}

}  // namespace tenon::serde

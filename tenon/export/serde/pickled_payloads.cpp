#include <functional>

#include "tenon/export/serde/torch_save.h"
#include "tenon/io/zip.h"

namespace tenon::serde {
namespace {

// What an object was pickled with; tensors among it are not supported.
void copy_value(PickleValue value, PickleWriter& out) {
  switch (value.kind()) {
    case PickleKind::none: return out.none();
    case PickleKind::boolean: return out.boolean(value.as_bool());
    case PickleKind::integer: return out.integer(value.as_int());
    case PickleKind::real: return out.real(value.as_real());
    case PickleKind::string: return out.string(value.as_string());
    case PickleKind::tuple:
      out.begin_tuple();
      for (size_t i = 0; i < value.size(); ++i) copy_value(value[i], out);
      return out.end_tuple();
    case PickleKind::list:
      out.begin_list();
      for (size_t i = 0; i < value.size(); ++i) copy_value(value[i], out);
      return out.end_list();
    case PickleKind::dict:
      out.begin_dict();
      for (size_t i = 0; i < value.size(); ++i) {
        copy_value(value.pair(i).key, out);
        copy_value(value.pair(i).value, out);
      }
      return out.end_dict();
    default:
      value.fail("a custom object of a file before PyTorch 2.9 that holds ", value.describe(), " is not supported yet");
  }
}

bool is_custom_object(PickleValue value) {
  return value.is(PickleKind::object) && value.callee().is_global("torch", "ScriptObject");
}

// Up to 2.8 an object is torch.ScriptObject with (state, class) for its state; since then a file of its own, in which
// its class is what is made.
OpaquePayload custom_object(std::string name, PickleValue value, size_t number) {
  std::optional<PickleValue> state = value.state();
  value.require(state && state->is(PickleKind::tuple) && state->size() == 2 && (*state)[1].is(PickleKind::string),
                "expected what the custom object ", quoted(name), " holds and its class");
  std::string_view type = (*state)[1].as_string();
  size_t dot = type.rfind('.');
  bool plain = dot != type.npos && dot > 0 && dot + 1 < type.size() && type.find('\n') == type.npos;
  value.require(plain, "expected a class of the custom object ", quoted(name), ", found ", quoted(type));
  PickleWriter pickle;
  pickle.begin_object_with_state(type.substr(0, dot), type.substr(dot + 1));
  copy_value((*state)[0], pickle);
  pickle.end_object_with_state();
  auto file = std::make_shared<std::string>();
  ZipWriter zip(file.get());
  zip.add("archive/data.pkl", pickle.take());
  zip.add("archive/version", "3\n");
  zip.add("archive/byteorder", "little");
  zip.commit();
  OpaquePayload out;
  out.name = std::move(name);
  out.file = text("custom_obj_", number);
  out.bytes = std::as_bytes(std::span(*file));
  out.owner = std::move(file);
  return out;
}

}  // namespace

// A dict, or collections.OrderedDict() with pairs added and perhaps an attribute _metadata, which says nothing here.
std::vector<NamedTensor> read_pickled_payloads(const std::shared_ptr<const Archive>& archive, PayloadFolder folder,
                                               std::vector<std::function<void()>>& checks,
                                               std::vector<OpaquePayload>& opaque) {
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
    if (is_custom_object(value)) {
      opaque.push_back(custom_object(std::string(key.as_string()), value, opaque.size()));
      continue;
    }
    value.require(value.is(PickleKind::call), "expected the tensor ", quoted(key.as_string()), " in ", what, ", found ",
                  value.describe());
    TorchSave::Pickled pickled = file.tensor(value);
    out.push_back({std::string(key.as_string()), std::move(pickled.tensor), pickled.is_parameter});
  }
  checks.push_back(file.check());
  return out;
}

}  // namespace tenon::serde

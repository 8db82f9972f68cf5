#include "tenon/session/state.h"

#include <cstring>
#include <mutex>

#include "tenon/base/text.h"
#include "tenon/interp/program_runner.h"

namespace tenon {

void State::add(std::string name, Tensor tensor) {
  names_.push_back(name);
  tensors_.emplace(std::move(name), std::move(tensor));
}

const Tensor* State::find(const std::string& name) const {
  auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : &it->second;
}

void State::own(const std::string& name) {
  const Tensor* found = find(name);
  require(found != nullptr, "the program has no state ", quoted(name));
  std::shared_ptr<Storage> storage = found->storage();
  if (owned_.contains(storage.get())) return;
  auto copy = std::make_shared<Storage>(storage->size());
  if (storage->size() > 0) std::memcpy(copy->mutable_data(), storage->data(), storage->size());
  owned_.insert(copy.get());
  for (auto& [each, tensor] : tensors_)
    if (tensor.storage() == storage) tensor = Tensor(tensor.meta(), copy);
}

void State::set(const std::string& name, const Tensor& value) {
  std::unique_lock lock(mutex_);
  const Tensor* found = find(name);
  require(found != nullptr, "the program has no state ", quoted(name));
  require(value && !value.is_traced() && value.dtype() == found->dtype() && value.sizes() == found->sizes(), name,
          ": expected ", found->meta(), ", got ", value ? text(value.meta()) : std::string("nothing"));
  own(name);
  Tensor target = *find(name);
  target.mutable_bytes();
  copy_elements(value, target);
  changed();
}

std::unique_ptr<State> State::copy() const {
  std::shared_lock lock(mutex_);
  auto out = std::make_unique<State>(seed_);
  for (const std::string& name : names_) out->add(name, *find(name));
  for (const std::string& name : names_) out->own(name);
  out->draws_ = draws_.load();
  return out;
}

uint64_t State::new_version() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

std::shared_ptr<interp::Derived> State::derived_by(const std::shared_ptr<const Executable>& executable) const {
  std::lock_guard lock(derived_mutex_);
  std::erase_if(derived_, [](const DerivedBy& d) { return d.executable.expired(); });
  for (const DerivedBy& d : derived_)
    if (d.executable.lock() == executable) return d.derived;
  derived_.push_back({executable, std::make_shared<interp::Derived>()});
  return derived_.back().derived;
}

}  // namespace tenon

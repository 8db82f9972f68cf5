// What a program keeps between runs: parameters, buffers, constants and the state of its random draws.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tenon/tensor/tensor.h"

namespace tenon {

struct Executable;
namespace interp {
struct Derived;
}

/// Tensors by name. Many runs may read one state at once; a run that updates it, and set(), wait until they have it
/// alone.
class State {
 public:
  explicit State(uint64_t seed = 0) : seed_(seed) {}
  State(const State&) = delete;

  void add(std::string name, Tensor tensor);
  const Tensor* find(const std::string& name) const;
  const std::vector<std::string>& names() const { return names_; }
  /// New contents of the same dtype and sizes; the tensor itself stays, and with it all that share its storage.
  void set(const std::string& name, const Tensor& value);
  /// Makes the storage behind a tensor this state's own, for all of its tensors that share it, so that writing it
  /// changes neither the file it may be mapped from nor another state.
  void own(const std::string& name);
  /// A state with contents of its own and the same draws to come.
  std::unique_ptr<State> copy() const;

  uint64_t version() const { return version_; }  // changes whenever contents do; no two states have the same
  void changed() { version_ = new_version(); }
  /// What an executable derives from this state, for all of its sessions.
  std::shared_ptr<interp::Derived> derived_by(const std::shared_ptr<const Executable>& executable) const;
  uint64_t seed() const { return seed_; }
  int64_t draw() { return draws_++; }  // a run that draws numbers takes one
  int64_t draws() const { return draws_; }
  /// Goes on drawing where another state stopped.
  void set_random(uint64_t seed, int64_t draws) { seed_ = seed, draws_ = draws; }
  std::shared_mutex& mutex() const { return mutex_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, Tensor> tensors_;
  std::unordered_set<const Storage*> owned_;
  uint64_t seed_ = 0;
  std::atomic<int64_t> draws_{0};
  static uint64_t new_version();
  std::atomic<uint64_t> version_{new_version()};
  mutable std::shared_mutex mutex_;
  struct DerivedBy {
    std::weak_ptr<const Executable> executable;
    std::shared_ptr<interp::Derived> derived;
  };
  mutable std::vector<DerivedBy> derived_;  // few: executables of one program
  mutable std::mutex derived_mutex_;
};

}  // namespace tenon

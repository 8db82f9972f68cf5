// What the back ends share: the planned program, its signature, and how its weights are filled. For this folder only.
#pragma once
#include "tenon/artifact/compile.h"
#include "tenon/artifact/signature.h"
#include "tenon/plan/make_tables.h"

namespace tenon::artifact {

class Compilation {
 public:
  Compilation(const Executable& executable, const State& state, const CompileOptions& options,
              bool interpreted = false);

  plan::Planned& planned() { return planned_; }
  const plan::Planned& planned() const { return planned_; }
  uint64_t weights_size() const { return planned_.tables.weights_size(); }
  void fill(std::span<std::byte> weights) const;

 private:
  Tensor state(size_t input) const;
  void place_samples(CallSignature& signature);
  void add_sample(CallSignature& signature, size_t leaf, const Tensor& t, uint64_t& at);

  const Executable& executable_;
  const State& state_;
  const CompileOptions& options_;
  plan::Planned planned_;
  std::vector<std::pair<Tensor, Sample>> samples_;
};

}  // namespace tenon::artifact

// Choices that are measured on this machine rather than computed from costs.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tenon/loop/method.h"

namespace tenon::artifact {

/// Measures each method of a convolution, on all threads, and gives the fastest; equal convolutions are measured once.
/// Weights are as cold as in a run: between two uses of them as many bytes of others are read as the program has state,
/// within limits. Nothing for sizes that only the run tells.
class Tuner {
 public:
  struct Measured {
    std::string convolution;
    std::vector<double> us;  // of each method, in the order of ConvMethod
    loop::ConvMethod chosen;
  };

  std::optional<loop::ConvMethod> choose(const loop::Program& program, const loop::Convolution& convolution);
  const std::vector<Measured>& measured() const { return measured_; }

 private:
  std::map<std::string, loop::ConvMethod> known_;
  std::vector<Measured> measured_;
};

}  // namespace tenon::artifact

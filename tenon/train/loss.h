// What training minimizes. A loss is an ordinary function over tensors: it is traced behind the program's outputs.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "tenon/tensor/tensor.h"

namespace tenon::train {

/// An input that a loss adds to the program's own.
struct Target {
  std::string name = "target";
  TensorMeta meta;     // sizes in terms of the outputs', so of the same symbols
  SymInt classes = 0;  // where not 0: its elements are classes, 0 to classes - 1, or `ignored`
  int64_t ignored = -100;
};

struct Loss {
  std::string name;
  /// The targets beside outputs of these metas. An Error says which outputs the loss takes.
  std::function<std::vector<Target>(std::span<const TensorMeta> outputs)> targets;
  /// A scalar. `outputs` are the program's tensors in order, `targets` those asked for.
  std::function<Tensor(std::span<const Tensor> outputs, std::span<const Tensor> targets)> value;
  /// Two integers, where answers can be right or wrong: how many are right, and of how many. May be empty.
  std::function<std::vector<Tensor>(std::span<const Tensor> outputs, std::span<const Tensor> targets)> right;
};

struct CrossEntropyOptions {
  double label_smoothing = 0;
  int64_t ignore_index = -100;
  bool probabilities = false;  // the target has a probability for each class, not the class
};
/// Of output_0, f32[n, classes, ...], and classes i64[n, ...]: as torch.nn.functional has them.
Loss cross_entropy(const CrossEntropyOptions& options = {});
Loss mse();              // the mean of squares of output_0 - target
Loss bce_with_logits();  // output_0 are logits, the target probabilities
Loss own_loss();         // output_0 is the loss itself

/// "cross_entropy,label_smoothing=0.1", "mse", "bce_with_logits" or "none". `probabilities`: the target at hand has a
/// floating point dtype.
Loss loss_named(const std::string& text, bool probabilities = false);

}  // namespace tenon::train

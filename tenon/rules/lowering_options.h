// What rules choose by the machine that a program is meant for, rather than by what their operators mean.
#pragma once
#include "tenon/tensor/context.h"

namespace tenon {

/// The defaults are PyTorch's choices on a CPU, so that results agree with it as closely as they can.
struct LoweringOptions {
  /// Batch norm adds up its statistics in f64, whatever the dtype: with few samples the gradient is a difference of
  /// nearly equal numbers.
  bool double_statistics = true;
  /// scaled_dot_product_attention becomes the one operator that computes it blockwise, for the calls that PyTorch's own
  /// for the CPU takes; otherwise products and a softmax.
  bool flash_attention = true;
  bool operator==(const LoweringOptions&) const = default;
};

/// Those of this thread.
const LoweringOptions& lowering_options();

/// Makes options, which outlive the scope, the ones that rules on this thread go by.
class LoweringScope : ContextScope<const LoweringOptions*> {
 public:
  explicit LoweringScope(const LoweringOptions& options) : ContextScope(&Context::lowering, &options) {}
};

}  // namespace tenon

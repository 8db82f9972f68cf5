// Which floating point numbers a training computes in.
#pragma once
#include <string>

#include "tenon/graph/graph.h"

namespace tenon::train {

enum class Precision : uint8_t {
  full,  // as the program says
  bf16,  // products of f32 in bf16, as under torch.autocast; parameters and what the optimizer keeps stay f32
};

/// A functional graph in which matrix products, convolutions and attention take their f32 operands as bf16. What sums
/// many numbers or leaves the range of bf16 (norms, softmax, losses, exponentials) takes f32, the rest what comes, the
/// wider where operands differ. Inputs and outputs keep their dtypes.
Graph in_precision(const GraphBody& graph, Precision precision);

/// "full" or "bf16".
Precision precision_named(const std::string& text);

}  // namespace tenon::train

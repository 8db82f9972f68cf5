// Weights in the layout that the kernel library reads, packed when the state changes.
#pragma once
#include <functional>
#include <optional>

#include "tenon/loop/method.h"
#include "tenon/loop/program.h"

namespace tenon::optimize {

/// How a convolution that has more than one method is computed; nothing: as costs say.
using MethodChoice =
    std::function<std::optional<loop::ConvMethod>(const loop::Program& program, const loop::Convolution& convolution)>;

struct PackOptions {
  MethodChoice methods;
  /// f16 or bf16: right sides of products that are f32 are rounded to it and kept so.
  std::optional<DType> weights;
};

/// Right sides of products and weights of convolutions that are fixed state, or made of it, are packed in on_state,
/// each once, and read packed: for the method that is chosen, or costs least (loop/method.h). A table whose rows are
/// looked up too is looked up there, and so kept once. Numbers of half precision are kept in it and widened where they
/// are multiplied. Results of a method keep their bits, but where `weights` asks for rounding.
loop::Program pack_weights(loop::Program program, const PackOptions& options = {});

}  // namespace tenon::optimize

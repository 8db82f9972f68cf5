// Weights in the layout that the kernel library reads, packed when the state changes.
#pragma once
#include "tenon/loop/program.h"

namespace tenon::optimize {

/// Right sides of products and weights of convolutions that are fixed state, or made of it, are packed in on_state,
/// each once, and read packed: for the method that costs least (loop/method.h). Results of a method keep their bits.
loop::Program pack_weights(loop::Program program);

}  // namespace tenon::optimize

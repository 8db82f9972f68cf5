// Which dimension of each buffer lies innermost.
#pragma once
#include "tenon/loop/program.h"

namespace tenon::optimize {

/// Buffers of the session that convolutions read and write get their channels side by side, as the kernel library wants
/// them, and so do those that stages compute from them or put into them along the same loop: images are turned once at
/// the program's entry and once at its end. Inputs, state and outputs keep their strides, and so does what other
/// anchors and calls use, what is viewed in ways that channels side by side do not allow, and what is summed over
/// channels and places at once. Stages walk in the new order. Results keep their bits: the order of sums is theirs.
loop::Program assign_layouts(loop::Program program);

}  // namespace tenon::optimize

// What follows products and convolutions, done while their sums are in registers.
#pragma once
#include "tenon/loop/program.h"

namespace tenon::optimize {

/// A bias per channel, a residual and relu that the reader of a product or a convolution begins with go into its
/// epilogue, in this order and rounded as before. A stage that does nothing else goes: the anchor stands in its place
/// and writes what it wrote.
loop::Program add_epilogues(loop::Program program);

}  // namespace tenon::optimize

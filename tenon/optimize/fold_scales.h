// Factors per channel behind products and convolutions, in their weights.
#pragma once
#include "tenon/loop/program.h"

namespace tenon::optimize {

/// A stage that reads a product's or a convolution's result as result * s + t, where s and t are of the channel and of
/// fixed state (batch norm in evaluation), reads weights multiplied by s instead: w * s and t are computed in f64 when
/// the state changes. Sums are rounded in other places than before.
loop::Program fold_scales(loop::Program program);

}  // namespace tenon::optimize

// Elements that a mask names.
#pragma once
#include "tenon/rules/op_def.h"

namespace tenon {

extern Handle nonzero, nonzero_static, masked_scatter;

/// The row-major number of each true element among the true ones, minus one where it is false: positions[i] for i of
/// mask's sizes.
Ref mask_positions(Lower& l, Ref mask);

}  // namespace tenon

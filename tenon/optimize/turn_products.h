// Products stored the way they are read.
#pragma once
#include "tenon/loop/program.h"

namespace tenon::optimize {

/// A product of matrices that stages read column by column (the gradient of a weight, which is the transposed
/// product's) is stored column by column: those stages then read neighbours, and the gemm is as fast either way.
loop::Program turn_products(loop::Program program);

}  // namespace tenon::optimize

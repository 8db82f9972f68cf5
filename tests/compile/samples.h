// Kernels as the compiler will write them, for golden texts and tests.
#pragma once
#include "tenon/compile/kernel.h"

namespace tenon::compile {

Kernel pointwise_chain();  // y = relu(x + bias[column]) / 2, rounded to bf16 between
Kernel row_sum();          // y[row] = sum of x[row, :], 32 ways
Kernel gather_rows();      // y[i, :] = table[index[i], :], bad indices reported
Kernel scatter_add();      // y[index[i]] += x[i]
Kernel softmax_rows();

}  // namespace tenon::compile

// Tensors as the runtime's C interface has them.
#pragma once
#include "runtime/include/tenon/runtime.h"
#include "tenon/tensor/tensor.h"

namespace tenon::artifact {

/// An Error with the runtime's sentence, unless it is well.
void check(tenon_status status);

tenon_tensor as_runtime(const TensorMeta& meta);  // without memory
tenon_tensor as_runtime(const Tensor& tensor);    // over its memory
TensorMeta meta_of(const tenon_tensor& tensor);
DType dtype_of_code(int32_t code);
/// Bytes from the first element to behind the last.
size_t reach_bytes(const TensorMeta& meta);

}  // namespace tenon::artifact

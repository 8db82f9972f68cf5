#include "tenon/artifact/runtime_tensor.h"

#include "tenon/base/error.h"

namespace tenon::artifact {

void check(tenon_status status) {
  if (status == TENON_OK) return;
  if (status == TENON_UNSUPPORTED) fail_unsupported(tenon_last_error());
  fail(tenon_last_error());
}

namespace {
int32_t code_of(DType dtype) {
  for (int32_t code = 0; code < TENON_DTYPE_COUNT; ++code)
    if (name(dtype) == tenon_dtype_name(code)) return code;
  fail_unsupported(text("compiled programs have no tensors of ", dtype));
}
}  // namespace

DType dtype_of_code(int32_t code) {
  auto dtype = dtype_of(tenon_dtype_name(code));
  expect(dtype.has_value(), "the runtime has a dtype that tensors lack: ", tenon_dtype_name(code));
  return *dtype;
}

tenon_tensor as_runtime(const TensorMeta& meta) {
  tenon_tensor out{};
  out.dtype = code_of(meta.dtype);
  out.rank = static_cast<int32_t>(meta.rank());
  require(meta.rank() <= TENON_MAX_RANK, "compiled programs take tensors of at most ", TENON_MAX_RANK, " dimensions");
  for (size_t d = 0; d < meta.rank(); ++d) {
    out.sizes[d] = meta.sizes[d].as_int();
    out.strides[d] = meta.strides[d].as_int();
  }
  return out;
}

tenon_tensor as_runtime(const Tensor& tensor) {
  tenon_tensor out = as_runtime(tensor.meta());
  out.data = const_cast<std::byte*>(tensor.bytes());
  return out;
}

TensorMeta meta_of(const tenon_tensor& t) {
  TensorMeta meta;
  meta.dtype = dtype_of_code(t.dtype);
  for (int32_t d = 0; d < t.rank; ++d) {
    meta.sizes.push_back(t.sizes[d]);
    meta.strides.push_back(t.strides[d]);
  }
  return meta;
}

size_t reach_bytes(const TensorMeta& meta) {
  int64_t last = 0;
  for (size_t d = 0; d < meta.rank(); ++d) {
    if (meta.sizes[d].as_int() == 0) return 0;
    last = sym::checked_add(last, sym::checked_mul(meta.sizes[d].as_int() - 1, meta.strides[d].as_int()));
  }
  return static_cast<size_t>(last + 1) * item_size(meta.dtype);
}

}  // namespace tenon::artifact

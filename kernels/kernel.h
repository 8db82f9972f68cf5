// What every source of the kernel library starts with. Kernels are freestanding: no header but this library's own,
// <stdint.h> and <stddef.h>; no exceptions, statics, thread-locals, allocation or library calls; constant tables hold
// no pointers. The build refuses a family that needs more. Sizes, offsets and scratch memory are handed in, and what
// [lo, hi) writes does not depend on how the caller cuts the range.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "runtime/abi.h"

#define TENON_KERNEL_JOIN2(a, b, c) a##b##c
#define TENON_KERNEL_JOIN(target, name) TENON_KERNEL_JOIN2(tenon_, target, _##name)

/// Defines a function that artifacts and the interpreter find by name:
///   TENON_KERNEL(sort_f32) { return sort<float>(*args, lo, hi); }
/// Its parameters are `args`, `lo` and `hi`; it returns bits of enum tenon_kernel_status.
#define TENON_KERNEL(name) \
  extern "C" int TENON_KERNEL_JOIN(TENON_TARGET, name)(const struct tenon_args* args, int64_t lo, int64_t hi)

/// The same for host functions, with `call`, `lo` and `hi`.
#define TENON_HOST_FUNCTION(name)                                                                             \
  extern "C" int TENON_KERNEL_JOIN(TENON_TARGET, host_##name)(const struct tenon_host_call* call, int64_t lo, \
                                                              int64_t hi)

namespace tenon::kernels {

/// The parameters of a call as the struct that the family's header declares: int64_t and double fields only.
template <class Params>
const Params& params(const tenon_args& args) {
  static_assert(sizeof(Params) % 8 == 0 && alignof(Params) == 8);
  return *reinterpret_cast<const Params*>(args.params);
}

/// Buffer `i` from its first element on.
template <class T>
T* buffer(const tenon_args& args, int i) {
  return static_cast<T*>(args.buffers[i]);
}

/// What is done to a block of results as soon as it is written: nothing, or a generated kernel.
class BlockEpilogue {
 public:
  explicit BlockEpilogue(const tenon_args& args) : given_(args.epilogue) {}
  explicit operator bool() const { return given_ != nullptr; }
  /// Rows are those of the whole result, one batch entry or image behind the other.
  int operator()(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    if (given_ == nullptr) return TENON_KERNEL_OK;
    alignas(TENON_ALIGNMENT) int64_t which[2] = {column, column + columns};
    const tenon_args args{given_->buffers, given_->params, which, nullptr};
    return given_->kernel(&args, row, row + rows);
  }

 private:
  const tenon_epilogue* given_;
};

template <class T>
T least(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T greatest(T a, T b) {
  return a < b ? b : a;
}
template <class T>
void exchange(T& a, T& b) {
  T kept = a;
  a = b;
  b = kept;
}

}  // namespace tenon::kernels

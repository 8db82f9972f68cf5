// What PyTorch's decompositions are written with again and again. For dialect/ only.
#pragma once
#include <span>

#include "tenon/dialect/tracer.h"

namespace tenon::dialect {

inline Given layout() { return kw("layout", Layout::strided); }
inline Given device(const Tensor& x) { return kw("device", x.meta().device); }
inline Given unpinned() { return kw("pin_memory", false); }
inline Given contiguous_format() { return kw("memory_format", MemoryFormat::contiguous); }

/// A number as it is written, as a tensor of another's dtype.
inline Tensor scalar_of(const CallArg& number, const Tensor& x) {
  return aten("scalar_tensor", number, kw("dtype", x.dtype()), layout(), device(x));
}

/// The numbers from 0 to count, where a tensor is.
inline Tensor range_of(SymInt count, const Tensor& x) {
  return aten("arange.start_step", 0, count, layout(), device(x), unpinned());
}

/// A tensor of one number, of another's dtype.
inline Tensor full_of(const Sizes& sizes, const CallArg& number, const Tensor& x) {
  return aten("full", sizes, number, kw("dtype", x.dtype()), layout(), device(x), unpinned());
}

/// A loss as it is, its mean or its sum: 0, 1, 2.
inline Results reduced(const Tensor& loss, int64_t how) {
  if (how == 1) return aten("mean", loss);
  if (how == 2) return aten("sum", loss);
  return one(loss);
}

/// f32 or f64: what PyTorch computes in the dtype itself.
inline bool is_full_float(const Tensor& x) { return x.dtype() == DType::f32 || x.dtype() == DType::f64; }

inline Sizes first_of(const Sizes& sizes, size_t count) { return Sizes(std::span<const SymInt>(sizes.data(), count)); }
inline Sizes joined(Sizes first, const Sizes& second) {
  for (SymInt each : second) first.push_back(each);
  return first;
}

inline bool is_static(const Tensor& x) {
  for (SymInt size : x.sizes())
    if (!size.is_int()) return false;
  return true;
}

}  // namespace tenon::dialect

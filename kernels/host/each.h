// Functions of one number or two, for each element of a result from lo to hi - 1.
#pragma once
#include "kernels/host/call.h"

namespace tenon::kernels {

inline bool broadcasts(const tenon_tensor& t, const tenon_tensor& to) {
  if (t.rank > to.rank || !is_real(t.dtype)) return false;
  for (int32_t d = 0; d < t.rank; ++d)
    if (t.sizes[d] != 1 && t.sizes[d] != to.sizes[to.rank - t.rank + d]) return false;
  return true;
}

template <class T, class F>
int each(Call& call, int64_t lo, int64_t hi, F f) {
  const tenon_tensor& x = call.inputs[0];
  tenon_tensor& out = call.results[0];
  if (!broadcasts(x, out)) return TENON_KERNEL_ARITHMETIC;
  Walk from(x, out, lo), to(out, out, lo);
  for (int64_t i = lo; i < hi; ++i, from.next(), to.next())
    store(out.data, out.dtype, to.offset(), f(load<T>(x.data, x.dtype, from.offset())));
  return 0;
}

template <class T, class F>
int each_pair(Call& call, int64_t lo, int64_t hi, F f) {
  const tenon_tensor &x = call.inputs[0], &y = call.inputs[1];
  tenon_tensor& out = call.results[0];
  if (!broadcasts(x, out) || !broadcasts(y, out)) return TENON_KERNEL_ARITHMETIC;
  Walk a(x, out, lo), b(y, out, lo), to(out, out, lo);
  for (int64_t i = lo; i < hi; ++i, a.next(), b.next(), to.next())
    store(out.data, out.dtype, to.offset(),
          f(load<T>(x.data, x.dtype, a.offset()), load<T>(y.data, y.dtype, b.offset())));
  return 0;
}

}  // namespace tenon::kernels

// Numbers and truths about tensors.
#include "kernels/host/call.h"

namespace tenon::kernels {
namespace {

bool broadcasts(const tenon_tensor& t, int32_t rank, const int64_t* sizes) {
  if (t.rank > rank) return false;
  for (int32_t d = 0; d < t.rank; ++d)
    if (t.sizes[d] != 1 && t.sizes[d] != sizes[rank - t.rank + d]) return false;
  return true;
}

bool is_close(double a, double b, double error, double allowed, bool equal_nan) {
  return a == b || (equal_nan && is_nan(a) && is_nan(b)) || (is_finite(error) && error <= allowed);
}

}  // namespace

// The one element of a tensor.
TENON_HOST_FUNCTION(item) {
  (void)lo, (void)hi;
  const tenon_tensor& x = call->inputs[0];
  tenon_tensor& out = call->results[0];
  if (count(x) != 1 || !is_real(x.dtype)) return refuse(*call, 1, count(x));
  if (out.dtype == TENON_F64) store(out.data, out.dtype, 0, load<double>(x.data, x.dtype, 0));
  else store(out.data, out.dtype, 0, load<int64_t>(x.data, x.dtype, 0));
  return 0;
}

TENON_HOST_FUNCTION(equal) {
  (void)lo, (void)hi;
  const tenon_tensor &a = call->inputs[0], &b = call->inputs[1];
  bool same = same_sizes(a, b), floating = is_floating(a.dtype) || is_floating(b.dtype);
  if (!is_real(a.dtype) || !is_real(b.dtype)) return TENON_KERNEL_ARITHMETIC;
  if (same) {
    Walk p(a), q(b);
    for (int64_t i = 0, n = count(a); i < n && same; ++i, p.next(), q.next())
      same = floating ? load<double>(a.data, a.dtype, p.offset()) == load<double>(b.data, b.dtype, q.offset())
                      : load<int64_t>(a.data, a.dtype, p.offset()) == load<int64_t>(b.data, b.dtype, q.offset());
  }
  store(call->results[0].data, call->results[0].dtype, 0, int64_t{same});
  return 0;
}

// self, other; rtol, atol, equal_nan
TENON_HOST_FUNCTION(allclose) {
  (void)lo, (void)hi;
  const tenon_tensor &a = call->inputs[0], &b = call->inputs[1];
  Params params(*call);
  double rtol = params.real(), atol = params.real();
  bool equal_nan = params.flag(), close = true;
  const tenon_tensor& wide = a.rank >= b.rank ? a : b;
  int64_t sizes[TENON_MAX_RANK], n = 1;
  for (int32_t d = 0; d < wide.rank; ++d) {
    int32_t of_a = d - (wide.rank - a.rank), of_b = d - (wide.rank - b.rank);
    int64_t size = of_a < 0 ? 1 : a.sizes[of_a];
    sizes[d] = size == 1 && of_b >= 0 ? b.sizes[of_b] : size;
    n *= sizes[d];
  }
  if (!broadcasts(a, wide.rank, sizes) || !broadcasts(b, wide.rank, sizes)) return refuse(*call, 1);
  if (a.dtype != b.dtype || !is_real(a.dtype)) return refuse(*call, 2);
  if (!(rtol >= 0 && atol >= 0)) return refuse(*call, 3, rtol, atol);
  Walk p(a, wide.rank, sizes, 0), q(b, wide.rank, sizes, 0);
  for (int64_t i = 0; i < n && close; ++i, p.next(), q.next()) {
    double x = load<double>(a.data, a.dtype, p.offset()), y = load<double>(b.data, b.dtype, q.offset());
    if (a.dtype == TENON_F64) {
      close = is_close(x, y, abs(x - y), atol + abs(rtol * y), equal_nan);
    } else if (!is_floating(a.dtype) &&
               load<int64_t>(a.data, a.dtype, p.offset()) == load<int64_t>(b.data, b.dtype, q.offset())) {
      continue;
    } else {  // everything else is compared in f32
      auto f = static_cast<float>(x), g = static_cast<float>(y), error = abs(f - g);
      float allowed = static_cast<float>(atol) + abs(static_cast<float>(rtol) * g);
      close = is_close(is_floating(a.dtype) ? x : 0, is_floating(a.dtype) ? y : 1, static_cast<double>(error),
                       static_cast<double>(allowed), equal_nan);
    }
  }
  store(call->results[0].data, call->results[0].dtype, 0, int64_t{close});
  return 0;
}

}  // namespace tenon::kernels

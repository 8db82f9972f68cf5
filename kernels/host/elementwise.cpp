// Functions of integers and of the parts of numbers, element by element.
#include "kernels/host/each.h"

namespace tenon::kernels {
namespace {

// What leaves 64 bits wraps around.
uint64_t size(int64_t a) { return a < 0 ? -static_cast<uint64_t>(a) : static_cast<uint64_t>(a); }
uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
int64_t gcd(int64_t a, int64_t b) { return static_cast<int64_t>(common_divisor(size(a), size(b))); }
int64_t lcm(int64_t a, int64_t b) {
  uint64_t g = common_divisor(size(a), size(b));
  return g == 0 ? 0 : static_cast<int64_t>(size(static_cast<int64_t>(size(a) / g * size(b))));
}

}  // namespace

TENON_HOST_FUNCTION(gcd) { return each_pair<int64_t>(*call, lo, hi, gcd); }
TENON_HOST_FUNCTION(lcm) { return each_pair<int64_t>(*call, lo, hi, lcm); }

// self -> mantissa, exponent
TENON_HOST_FUNCTION(frexp) {
  const tenon_tensor& x = call->inputs[0];
  tenon_tensor &mantissa = call->results[0], &exponent = call->results[1];
  if (!same_sizes(x, mantissa) || !same_sizes(x, exponent)) return TENON_KERNEL_ARITHMETIC;
  Walk from(x, x, lo), to(mantissa, x, lo), also(exponent, x, lo);
  for (int64_t i = lo; i < hi; ++i, from.next(), to.next(), also.next()) {
    int64_t e = 0;
    store(mantissa.data, mantissa.dtype, to.offset(), split(load<double>(x.data, x.dtype, from.offset()), e));
    store(exponent.data, exponent.dtype, also.offset(), e);
  }
  return 0;
}

}  // namespace tenon::kernels

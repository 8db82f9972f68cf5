// A tensor's elements as 64 bits each, combined by exclusive or.
#include "kernels/host/call.h"

namespace tenon::kernels {
namespace {

uint64_t word_of(const tenon_tensor& t, int64_t offset) {
  if (is_floating(t.dtype)) return static_cast<uint64_t>(bits_of(load<double>(t.data, t.dtype, offset)));
  return static_cast<uint64_t>(load<int64_t>(t.data, t.dtype, offset));
}

}  // namespace

// x; dims, keepdim, mode
TENON_HOST_FUNCTION(hash_tensor) {
  (void)lo, (void)hi;
  const tenon_tensor& x = call->inputs[0];
  tenon_tensor& out = call->results[0];
  Params params(*call);
  Params::List dims = params.list();
  bool keepdim = params.flag(), reduced[TENON_MAX_RANK];
  for (int32_t d = 0; d < x.rank; ++d) reduced[d] = dims.count == 0;
  for (int64_t i = 0; i < dims.count; ++i) {
    int64_t d = dims[i] < 0 ? dims[i] + x.rank : dims[i];
    if (x.rank == 0) continue;
    if (d < 0 || d >= x.rank) return TENON_KERNEL_ARITHMETIC;
    reduced[d] = true;
  }
  // The result as it lies over x: a reduced dimension does not move in it.
  tenon_tensor over = x;
  over.data = out.data;
  int32_t own = 0;
  for (int32_t d = 0; d < x.rank; ++d) {
    over.strides[d] = reduced[d] ? 0 : out.strides[own];
    if (!reduced[d] && out.sizes[own] != x.sizes[d]) return TENON_KERNEL_ARITHMETIC;
    own += keepdim || !reduced[d];
  }
  if (own != out.rank || out.dtype != TENON_U64) return TENON_KERNEL_ARITHMETIC;
  auto* words = static_cast<uint64_t*>(out.data);
  Walk each(out);
  for (int64_t i = 0, n = count(out); i < n; ++i, each.next()) words[each.offset()] = 0;
  Walk from(x), to(over);
  for (int64_t i = 0, n = count(x); i < n; ++i, from.next(), to.next()) words[to.offset()] ^= word_of(x, from.offset());
  return 0;
}

}  // namespace tenon::kernels

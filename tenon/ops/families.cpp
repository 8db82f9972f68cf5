#include "tenon/ops/families.h"

namespace tenon {

void register_families(Registry& ops) {
  register_arithmetic(ops);
  register_control(ops);
  register_conv(ops);
  register_convert(ops);
  register_create(ops);
  register_index(ops);
  register_masked(ops);
  register_matmul(ops);
  register_pad(ops);
  register_pool(ops);
  register_pool_adaptive(ops);
  register_rearrange(ops);
  register_reduce(ops);
  register_scatter(ops);
  register_shape(ops);
  register_symbolic(ops);
  register_view(ops);
  register_view_write(ops);
}

}  // namespace tenon

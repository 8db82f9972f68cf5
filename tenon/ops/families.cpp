#include "tenon/ops/families.h"

namespace tenon {

void register_families(Registry& ops) {
  register_activation(ops);
  register_activation_pairs(ops);
  register_arithmetic(ops);
  register_attention(ops);
  register_batch_norm(ops);
  register_control(ops);
  register_conv(ops);
  register_convert(ops);
  register_create(ops);
  register_create_more(ops);
  register_differences(ops);
  register_distance(ops);
  register_distance_pairs(ops);
  register_elementwise(ops);
  register_elementwise_pairs(ops);
  register_embedding_bag(ops);
  register_fill(ops);
  register_grid_sample(ops);
  register_grid_sample_backward(ops);
  register_histogram(ops);
  register_index(ops);
  register_index_along(ops);
  register_integral(ops);
  register_join(ops);
  register_linalg(ops);
  register_linalg_factor(ops);
  register_linalg_powers(ops);
  register_linalg_spectrum(ops);
  register_logic(ops);
  register_loss(ops);
  register_loss_margin(ops);
  register_masked(ops);
  register_matmul(ops);
  register_norm(ops);
  register_pad(ops);
  register_pool(ops);
  register_pool_adaptive(ops);
  register_pool_fractional(ops);
  register_products(ops);
  register_quantile(ops);
  register_random(ops);
  register_random_distributions(ops);
  register_rearrange(ops);
  register_recurrent(ops);
  register_reduce(ops);
  register_scan(ops);
  register_scatter(ops);
  register_segment(ops);
  register_shape(ops);
  register_softmax(ops);
  register_sort(ops);
  register_special(ops);
  register_split(ops);
  register_statistics(ops);
  register_symbolic(ops);
  register_unique(ops);
  register_upsample(ops);
  register_view(ops);
  register_view_write(ops);
}

}  // namespace tenon

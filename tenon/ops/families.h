// The families of operators, one file (or a few) each.
#pragma once

namespace tenon {

class Registry;

void register_activation(Registry& ops);
void register_activation_pairs(Registry& ops);
void register_arithmetic(Registry& ops);
void register_attention(Registry& ops);
void register_batch_norm(Registry& ops);
void register_control(Registry& ops);
void register_conv(Registry& ops);
void register_convert(Registry& ops);
void register_create(Registry& ops);
void register_create_more(Registry& ops);
void register_differences(Registry& ops);
void register_distance(Registry& ops);
void register_distance_pairs(Registry& ops);
void register_elementwise(Registry& ops);
void register_elementwise_pairs(Registry& ops);
void register_embedding_bag(Registry& ops);
void register_fill(Registry& ops);
void register_grid_sample(Registry& ops);
void register_grid_sample_backward(Registry& ops);
void register_histogram(Registry& ops);
void register_index(Registry& ops);
void register_index_along(Registry& ops);
void register_integral(Registry& ops);
void register_join(Registry& ops);
void register_linalg(Registry& ops);
void register_linalg_factor(Registry& ops);
void register_linalg_powers(Registry& ops);
void register_linalg_spectrum(Registry& ops);
void register_logic(Registry& ops);
void register_loss(Registry& ops);
void register_loss_margin(Registry& ops);
void register_masked(Registry& ops);
void register_matmul(Registry& ops);
void register_norm(Registry& ops);
void register_pad(Registry& ops);
void register_pool(Registry& ops);
void register_pool_adaptive(Registry& ops);
void register_pool_fractional(Registry& ops);
void register_products(Registry& ops);
void register_quantile(Registry& ops);
void register_random(Registry& ops);
void register_random_distributions(Registry& ops);
void register_rearrange(Registry& ops);
void register_recurrent(Registry& ops);
void register_reduce(Registry& ops);
void register_scan(Registry& ops);
void register_scatter(Registry& ops);
void register_segment(Registry& ops);
void register_shape(Registry& ops);
void register_softmax(Registry& ops);
void register_sort(Registry& ops);
void register_special(Registry& ops);
void register_split(Registry& ops);
void register_statistics(Registry& ops);
void register_symbolic(Registry& ops);
void register_unique(Registry& ops);
void register_upsample(Registry& ops);
void register_view(Registry& ops);
void register_view_write(Registry& ops);

void register_families(Registry& ops);

}  // namespace tenon

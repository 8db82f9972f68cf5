// The families of operators, one file (or a few) each.
#pragma once

namespace tenon {

class Registry;

void register_arithmetic(Registry& ops);
void register_control(Registry& ops);
void register_conv(Registry& ops);
void register_convert(Registry& ops);
void register_create(Registry& ops);
void register_index(Registry& ops);
void register_masked(Registry& ops);
void register_matmul(Registry& ops);
void register_pad(Registry& ops);
void register_pool(Registry& ops);
void register_pool_adaptive(Registry& ops);
void register_rearrange(Registry& ops);
void register_reduce(Registry& ops);
void register_scatter(Registry& ops);
void register_shape(Registry& ops);
void register_symbolic(Registry& ops);
void register_view(Registry& ops);
void register_view_write(Registry& ops);

void register_families(Registry& ops);

}  // namespace tenon

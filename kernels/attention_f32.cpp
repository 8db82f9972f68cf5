#include "kernels/attention_functions.h"

namespace tenon::kernels {

TENON_KERNEL(attention_pack_f32) { return attention_pack<float>(*args, lo, hi); }
TENON_KERNEL(attention_f32) { return attention<float>(*args, lo, hi); }
TENON_KERNEL(attention_heads_f32) { return attention_heads<float>(*args, lo, hi); }
TENON_KERNEL(attention_gradient_f32) { return attention_gradient<float>(*args, lo, hi); }

}  // namespace tenon::kernels

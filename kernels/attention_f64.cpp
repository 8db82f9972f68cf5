#include "kernels/attention_functions.h"

namespace tenon::kernels {

TENON_KERNEL(attention_pack_f64) { return attention_pack<double>(*args, lo, hi); }
TENON_KERNEL(attention_f64) { return attention<double>(*args, lo, hi); }
TENON_KERNEL(attention_heads_f64) { return attention_heads<double>(*args, lo, hi); }
TENON_KERNEL(attention_gradient_f64) { return attention_gradient<double>(*args, lo, hi); }

}  // namespace tenon::kernels

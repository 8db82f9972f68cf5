#include "kernels/gemm_functions.h"

using namespace tenon::kernels;

TENON_KERNEL(gemm_pack_f16) { return gemm_pack<Half, Half>(*args, lo, hi); }
TENON_KERNEL(gemm_pack_f32_f16) { return gemm_pack<Half, float>(*args, lo, hi); }
TENON_KERNEL(gemm_f32_f16) { return gemm<float, Half>(*args, lo, hi, true); }

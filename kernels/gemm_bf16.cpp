#include "kernels/gemm_functions.h"

using namespace tenon::kernels;

TENON_KERNEL(gemm_pack_bf16) { return gemm_pack<BFloat, BFloat>(*args, lo, hi); }
TENON_KERNEL(gemm_pack_f32_bf16) { return gemm_pack<BFloat, float>(*args, lo, hi); }
TENON_KERNEL(gemm_f32_bf16) { return gemm<float, BFloat>(*args, lo, hi, true); }

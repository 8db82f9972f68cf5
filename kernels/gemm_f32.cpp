#include "kernels/gemm_functions.h"

using namespace tenon::kernels;

TENON_KERNEL(gemm_pack_f32) { return gemm_pack<float, float>(*args, lo, hi); }
TENON_KERNEL(gemm_f32) { return gemm<float>(*args, lo, hi, true); }
TENON_KERNEL(gemm_unpacked_f32) { return gemm<float>(*args, lo, hi, false); }

#include "kernels/gemm_functions.h"

using namespace tenon::kernels;

TENON_KERNEL(gemm_pack_i64) { return gemm_pack<int64_t, int64_t>(*args, lo, hi); }
TENON_KERNEL(gemm_i64) { return gemm<int64_t>(*args, lo, hi, true); }
TENON_KERNEL(gemm_unpacked_i64) { return gemm<int64_t>(*args, lo, hi, false); }

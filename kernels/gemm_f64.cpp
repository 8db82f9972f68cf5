#include "kernels/gemm_functions.h"

using namespace tenon::kernels;

TENON_KERNEL(gemm_pack_f64) { return gemm_pack<double, double>(*args, lo, hi); }
TENON_KERNEL(gemm_f64) { return gemm<double>(*args, lo, hi, true); }
TENON_KERNEL(gemm_unpacked_f64) { return gemm<double>(*args, lo, hi, false); }

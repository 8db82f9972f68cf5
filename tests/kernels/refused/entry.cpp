#include "kernels/kernel.h"

extern "C" __attribute__((nocf_check)) int tenon_v3_entered(const struct tenon_args*, int64_t, int64_t) { return 0; }

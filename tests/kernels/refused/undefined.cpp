#include "kernels/kernel.h"

extern "C" double lgamma(double);
TENON_KERNEL(gamma) { return args ? static_cast<int>(lgamma(static_cast<double>(lo + hi))) : 0; }

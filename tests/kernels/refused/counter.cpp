#include "kernels/kernel.h"

static int64_t calls;
TENON_KERNEL(count) { return args && lo < hi && ++calls > 3; }

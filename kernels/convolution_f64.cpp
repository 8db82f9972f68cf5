#include "kernels/convolution_functions.h"
#include "kernels/depthwise_functions.h"

using namespace tenon::kernels;

TENON_KERNEL(convolution_stage_f64) { return convolution_stage<double>(*args, lo, hi); }
TENON_KERNEL(convolution_pack_f64) { return convolution_pack<double>(*args, lo, hi); }
TENON_KERNEL(convolution_f64) { return convolution<double>(*args, lo, hi); }
TENON_KERNEL(convolution_points_f64) { return convolution_points<double>(*args, lo, hi); }
TENON_KERNEL(convolution_weight_f64) { return convolution_weight<double>(*args, lo, hi); }
TENON_KERNEL(convolution_depthwise_pack_f64) { return convolution_depthwise_pack<double>(*args, lo, hi); }
TENON_KERNEL(convolution_depthwise_f64) { return convolution_depthwise<double>(*args, lo, hi); }
TENON_KERNEL(convolution_depthwise_weight_f64) { return convolution_depthwise_weight<double>(*args, lo, hi); }

#include "kernels/convolution_functions.h"
#include "kernels/depthwise_functions.h"
#include "kernels/winograd_functions.h"
#include "kernels/winograd_weight_functions.h"

using namespace tenon::kernels;

TENON_KERNEL(convolution_stage_f32) { return convolution_stage<float>(*args, lo, hi); }
TENON_KERNEL(convolution_pack_f32) { return convolution_pack<float>(*args, lo, hi); }
TENON_KERNEL(convolution_f32) { return convolution<float>(*args, lo, hi); }
TENON_KERNEL(convolution_points_f32) { return convolution_points<float>(*args, lo, hi); }
TENON_KERNEL(convolution_weight_f32) { return convolution_weight<float>(*args, lo, hi); }
TENON_KERNEL(convolution_depthwise_pack_f32) { return convolution_depthwise_pack<float>(*args, lo, hi); }
TENON_KERNEL(convolution_depthwise_f32) { return convolution_depthwise<float>(*args, lo, hi); }
TENON_KERNEL(convolution_depthwise_weight_f32) { return convolution_depthwise_weight<float>(*args, lo, hi); }
TENON_KERNEL(convolution_winograd_pack_f32) { return convolution_winograd_pack<float>(*args, lo, hi); }
TENON_KERNEL(convolution_winograd_f32) { return convolution_winograd<float>(*args, lo, hi); }
TENON_KERNEL(convolution_winograd_weight_f32) { return convolution_winograd_weight<float>(*args, lo, hi); }
TENON_KERNEL(convolution_winograd_weight_finish_f32) {
  return convolution_winograd_weight_finish<float>(*args, lo, hi);
}

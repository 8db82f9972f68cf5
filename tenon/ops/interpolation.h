// The kernel of cubic interpolation, which upsampling and grid sampling share, over tensors and over loop expressions.
#pragma once

namespace tenon {

/// The cubic's free parameter: PyTorch's own, and the one for images that are smoothed.
constexpr double cubic_parameter = -0.75, cubic_parameter_antialias = -0.5;

/// The weight of an element at distance d: near for 0 to 1, far for 1 to 2.
template <class T>
T cubic_near(const T& d, double a) {
  return ((d * (a + 2) - (a + 3)) * d) * d + 1.0;
}
template <class T>
T cubic_far(const T& d, double a) {
  return ((d * a - 5 * a) * d + 8 * a) * d - 4 * a;
}
template <class T>
T cubic_near_slope(const T& d, double a) {
  return (d * (3 * (a + 2)) - 2 * (a + 3)) * d;
}
template <class T>
T cubic_far_slope(const T& d, double a) {
  return (d * (3 * a) - 10 * a) * d + 8 * a;
}

}  // namespace tenon

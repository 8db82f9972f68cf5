#pragma once
#include <cstdint>

namespace tenon::templates {

/// A convolution over three spatial dimensions; those a 1-d or 2-d one lacks have size 1, kernel 1, stride 1, padding
/// 0. Transposed: the operation that is a convolution's gradient, with weights [in, out / groups, ...].
struct ConvShape {
  std::int64_t batch = 1, in_channels = 1, out_channels = 1, groups = 1;
  std::int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  std::int64_t stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  bool transposed = false;

  /// Sets out[] from the rest. The size may come out below 1: then there is no such convolution.
  void set_out(const std::int64_t (&output_padding)[3] = {0, 0, 0});
};

/// Five dimensions: batch (weights: the first channels), channel, and three in space. Strides in elements, any.
template <class T>
struct Volume {
  T* data = nullptr;
  std::int64_t stride[5] = {0, 0, 0, 0, 0};
};
/// Row-major, as NCHW.
template <class T>
Volume<T> contiguous_volume(T* data, std::int64_t channels, const std::int64_t (&sizes)[3]) {
  std::int64_t plane = sizes[1] * sizes[2];
  return {data, {channels * sizes[0] * plane, sizes[0] * plane, plane, sizes[2], 1}};
}

/// For float and double. bias [out_channels] may be null. Results do not depend on the number of threads.
template <class T>
void convolution(const ConvShape& shape, Volume<const T> input, Volume<const T> weight, const T* bias,
                 Volume<T> output);
template <class T>
void convolution_input_gradient(const ConvShape& shape, Volume<const T> output_gradient, Volume<const T> weight,
                                Volume<T> input_gradient);
template <class T>
void convolution_weight_gradient(const ConvShape& shape, Volume<const T> input, Volume<const T> output_gradient,
                                 Volume<T> weight_gradient);

}  // namespace tenon::templates

#include <tenon/nn/convolution.h>
#include <tenon/nn/init.h>

#include <cmath>

namespace tenon::TENON_INLINE v0::nn::detail {
namespace {

std::vector<std::int64_t> weight_sizes(std::int64_t first, std::int64_t second, const Extents& kernel,
                                       std::size_t dims) {
  std::vector<std::int64_t> out{first, second};
  if (kernel.each.size() != 1 && kernel.each.size() != dims)
    throw Error(ErrorKind::call, "a kernel of " + std::to_string(dims) +
                                     " dimensions has one size or one for each, got " +
                                     std::to_string(kernel.each.size()));
  for (std::size_t d = 0; d < dims; ++d) out.push_back(kernel.each[kernel.each.size() == 1 ? 0 : d]);
  return out;
}

void require_groups(std::int64_t in, std::int64_t out, std::int64_t groups) {
  if (in < 1 || out < 1)
    throw Error(ErrorKind::call, "a convolution: expected at least one channel in and one out, got " +
                                     std::to_string(in) + " and " + std::to_string(out));
  if (groups < 1 || in % groups != 0 || out % groups != 0)
    throw Error(ErrorKind::call, "groups: expected a divisor of both " + std::to_string(in) + " and " +
                                     std::to_string(out) + " channels, got " + std::to_string(groups));
}

void initialize(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, {.slope = std::sqrt(5.0)});
  if (!bias) return;
  double bound = 1 / std::sqrt(init::fans(weight).in);
  init::uniform_(bias, -bound, bound);
}

}  // namespace

Convolution::Convolution(std::size_t dims, std::int64_t in, std::int64_t out, const Extents& kernel,
                         const ConvOptions& options)
    : dims_(dims), options_(options) {
  require_groups(in, out, options.groups);
  weight = add_parameter("weight", empty(weight_sizes(out, in / options.groups, kernel, dims), options.dtype));
  bias = add_parameter("bias", options.bias ? empty({out}, options.dtype) : Tensor());
  initialize(weight, bias);
}

Tensor Convolution::forward(const Tensor& x) const {
  Scope scope(*this, x);
  const ConvOptions& o = options_;
  IntList padding = o.padding;
  if (dims_ == 1) return scope.result(conv1d(x, weight, bias, o.stride, padding, o.dilation, o.groups));
  if (dims_ == 2) return scope.result(conv2d(x, weight, bias, o.stride, padding, o.dilation, o.groups));
  return scope.result(conv3d(x, weight, bias, o.stride, padding, o.dilation, o.groups));
}

TransposedConvolution::TransposedConvolution(std::size_t dims, std::int64_t in, std::int64_t out, const Extents& kernel,
                                             const ConvTransposeOptions& options)
    : dims_(dims), options_(options) {
  require_groups(in, out, options.groups);
  weight = add_parameter("weight", empty(weight_sizes(in, out / options.groups, kernel, dims), options.dtype));
  bias = add_parameter("bias", options.bias ? empty({out}, options.dtype) : Tensor());
  initialize(weight, bias);
}

Tensor TransposedConvolution::forward(const Tensor& x) const {
  Scope scope(*this, x);
  const ConvTransposeOptions& o = options_;
  if (dims_ == 1)
    return scope.result(conv_transpose1d(x, weight, bias, o.stride, o.padding, o.output_padding, o.groups, o.dilation));
  if (dims_ == 2)
    return scope.result(conv_transpose2d(x, weight, bias, o.stride, o.padding, o.output_padding, o.groups, o.dilation));
  return scope.result(conv_transpose3d(x, weight, bias, o.stride, o.padding, o.output_padding, o.groups, o.dilation));
}

}  // namespace tenon::TENON_INLINEv0::nn::detail

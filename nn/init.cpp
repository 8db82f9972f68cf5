#include <tenon/arithmetic.h>
#include <tenon/autograd.h>
#include <tenon/nn/init.h>

#include <cmath>

namespace tenon::TENON_INLINE v0::nn::init {

Fans fans(const Tensor& weight) {
  if (weight.dim() < 2)
    throw Error(ErrorKind::call,
                "the fans of a weight: expected at least two dimensions, got " + std::to_string(weight.dim()));
  double field = 1;
  for (std::int64_t d = 2; d < weight.dim(); ++d) field *= static_cast<double>(weight.size(d));
  return {static_cast<double>(weight.size(1)) * field, static_cast<double>(weight.size(0)) * field};
}

double gain(std::string_view nonlinearity, double slope) {
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2.0 / (1 + slope * slope));
  if (nonlinearity == "selu") return 0.75;
  bool linear = nonlinearity == "linear" || nonlinearity == "sigmoid" || nonlinearity.starts_with("conv");
  if (!linear)
    throw Error(ErrorKind::call,
                "gain: expected linear, conv1d to conv3d, sigmoid, tanh, relu, leaky_relu or selu, got '" +
                    std::string(nonlinearity) + "'");
  return 1;
}

const Tensor& constant_(const Tensor& t, double value) {
  NoGradGuard off;
  fill_(t, value);
  return t;
}
const Tensor& uniform_(const Tensor& t, double low, double high) {
  NoGradGuard off;
  tenon::uniform_(t, low, high);
  return t;
}
namespace {
void require_deviation(double std) {
  if (!(std >= 0))
    throw Error(ErrorKind::call,
                "a normal distribution: expected a deviation of at least 0, got " + std::to_string(std));
}
}  // namespace
const Tensor& normal_(const Tensor& t, double mean, double std) {
  require_deviation(std);
  NoGradGuard off;
  t.copy_(randn_like(t) * std + mean);
  return t;
}
// By the inverse of the distribution function, between its values at the ends.
const Tensor& trunc_normal_(const Tensor& t, double mean, double std, double low, double high) {
  require_deviation(std);
  if (!(low <= high))
    throw Error(ErrorKind::call,
                "trunc_normal_: expected low <= high, got " + std::to_string(low) + " and " + std::to_string(high));
  NoGradGuard off;
  auto below = [](double x) { return (1 + std::erf(x / std::sqrt(2.0))) / 2; };
  double from = 2 * below((low - mean) / std) - 1, to = 2 * below((high - mean) / std) - 1;
  Tensor u = rand_like(t) * (to - from) + from;
  t.copy_((erfinv(u) * (std * std::sqrt(2.0)) + mean).clamp(low, high));
  return t;
}
const Tensor& xavier_uniform_(const Tensor& t, double gain) {
  Fans f = fans(t);
  double bound = gain * std::sqrt(6 / (f.in + f.out));
  return init::uniform_(t, -bound, bound);
}
const Tensor& xavier_normal_(const Tensor& t, double gain) {
  Fans f = fans(t);
  return init::normal_(t, 0, gain * std::sqrt(2 / (f.in + f.out)));
}
namespace {
double kaiming_deviation(const Tensor& t, const Kaiming& options) {
  Fans f = fans(t);
  return gain(options.nonlinearity, options.slope) / std::sqrt(options.fan_out ? f.out : f.in);
}
}  // namespace
const Tensor& kaiming_uniform_(const Tensor& t, const Kaiming& options) {
  double bound = std::sqrt(3.0) * kaiming_deviation(t, options);
  return init::uniform_(t, -bound, bound);
}
const Tensor& kaiming_normal_(const Tensor& t, const Kaiming& options) {
  return init::normal_(t, 0, kaiming_deviation(t, options));
}

}  // namespace tenon::TENON_INLINEv0::nn::init

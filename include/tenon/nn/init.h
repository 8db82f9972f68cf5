// Initial values of parameters, by PyTorch's rules. All write their tensor, without a history, and return it.
#pragma once
#include <tenon/tensor.h>

#include <string_view>

namespace tenon::TENON_INLINE v0::nn::init {

struct Fans {
  double in = 0, out = 0;
};
/// How many inputs reach an output of a weight [out, in, ...], and the other way round.
TENON_PUBLIC Fans fans(const Tensor& weight);
/// What a nonlinearity ("linear", "relu", "leaky_relu" with its slope, "tanh", "sigmoid", "selu", "conv2d", ...) asks
/// the standard deviation to be multiplied with.
TENON_PUBLIC double gain(std::string_view nonlinearity, double slope = 0.01);

TENON_PUBLIC const Tensor& constant_(const Tensor& t, double value);
TENON_PUBLIC const Tensor& uniform_(const Tensor& t, double low = 0, double high = 1);
TENON_PUBLIC const Tensor& normal_(const Tensor& t, double mean = 0, double std = 1);
TENON_PUBLIC const Tensor& trunc_normal_(const Tensor& t, double mean = 0, double std = 1, double low = -2,
                                         double high = 2);
TENON_PUBLIC const Tensor& xavier_uniform_(const Tensor& t, double gain = 1);
TENON_PUBLIC const Tensor& xavier_normal_(const Tensor& t, double gain = 1);

struct Kaiming {
  double slope = 0;      // of leaky_relu
  bool fan_out = false;  // keeps the size of gradients instead of that of activations
  std::string_view nonlinearity = "leaky_relu";
};
TENON_PUBLIC const Tensor& kaiming_uniform_(const Tensor& t, const Kaiming& options = {});
TENON_PUBLIC const Tensor& kaiming_normal_(const Tensor& t, const Kaiming& options = {});
inline const Tensor& zeros_(const Tensor& t) { return constant_(t, 0); }
inline const Tensor& ones_(const Tensor& t) { return constant_(t, 1); }

}  // namespace tenon::TENON_INLINEv0::nn::init

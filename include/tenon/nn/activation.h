// Activations as modules, for Sequential; as functions they are operators: tenon::relu(x).
#pragma once
#include <tenon/nn/module.h>

namespace tenon::TENON_INLINE v0::nn {

namespace detail {
template <Tensor (*function)(const Tensor&)>
class Activation : public Module {
 public:
  Tensor forward(const Tensor& x) const {
    Scope scope(*this, x);
    return scope.result(function(x));
  }
  Tensor operator()(const Tensor& x) const { return forward(x); }
};
template <Tensor (*function)(const Tensor&, double), double (*usual)()>
class NumberedActivation : public Module {
 public:
  explicit NumberedActivation(double number = usual()) : number_(number) {}
  Tensor forward(const Tensor& x) const {
    Scope scope(*this, x);
    return scope.result(function(x, number_));
  }
  Tensor operator()(const Tensor& x) const { return forward(x); }

 private:
  double number_;
};
template <Tensor (*function)(const Tensor&, std::int64_t)>
class ActivationAlong : public Module {
 public:
  explicit ActivationAlong(std::int64_t dim = -1) : dim_(dim) {}
  Tensor forward(const Tensor& x) const {
    Scope scope(*this, x);
    return scope.result(function(x, dim_));
  }
  Tensor operator()(const Tensor& x) const { return forward(x); }

 private:
  std::int64_t dim_;
};
inline double hundredth() { return 0.01; }
inline double unit() { return 1; }
inline double half() { return 0.5; }
inline Tensor leaky(const Tensor& x, double slope) { return leaky_relu(x, slope); }
inline Tensor exponential(const Tensor& x, double alpha) { return elu(x, alpha); }
inline Tensor smooth(const Tensor& x, double beta) { return softplus(x, beta); }
inline Tensor soft(const Tensor& x, double lambd) { return softshrink(x, lambd); }
inline Tensor hard(const Tensor& x, double lambd) { return hardshrink(x, lambd); }
inline Tensor continuous(const Tensor& x, double alpha) { return celu(x, alpha); }
inline Tensor clipped(const Tensor& x) { return hardtanh(x); }
inline Tensor clipped_at_six(const Tensor& x) { return hardtanh(x, 0, 6); }
inline Tensor gaussian(const Tensor& x) { return gelu(x); }
inline Tensor sign_like(const Tensor& x) { return div(x, add(abs(x), 1)); }
inline Tensor softmax_along(const Tensor& x, std::int64_t dim) { return softmax(x, dim); }
inline Tensor log_softmax_along(const Tensor& x, std::int64_t dim) { return log_softmax(x, dim); }
inline Tensor gated(const Tensor& x, std::int64_t dim) { return glu(x, dim); }
}  // namespace detail

using ReLU = detail::Activation<tenon::relu>;
using ReLU6 = detail::Activation<detail::clipped_at_six>;
using SELU = detail::Activation<tenon::selu>;
using GELU = detail::Activation<detail::gaussian>;
using SiLU = detail::Activation<tenon::silu>;
using Mish = detail::Activation<tenon::mish>;
using Sigmoid = detail::Activation<tenon::sigmoid>;
using LogSigmoid = detail::Activation<tenon::log_sigmoid>;
using Tanh = detail::Activation<tenon::tanh>;
using Hardtanh = detail::Activation<detail::clipped>;
using Hardswish = detail::Activation<tenon::hardswish>;
using Hardsigmoid = detail::Activation<tenon::hardsigmoid>;
using Softsign = detail::Activation<detail::sign_like>;
using LeakyReLU = detail::NumberedActivation<detail::leaky, detail::hundredth>;
using ELU = detail::NumberedActivation<detail::exponential, detail::unit>;
using CELU = detail::NumberedActivation<detail::continuous, detail::unit>;
using Softplus = detail::NumberedActivation<detail::smooth, detail::unit>;
using Softshrink = detail::NumberedActivation<detail::soft, detail::half>;
using Hardshrink = detail::NumberedActivation<detail::hard, detail::half>;
using Softmax = detail::ActivationAlong<detail::softmax_along>;
using LogSoftmax = detail::ActivationAlong<detail::log_softmax_along>;
using GLU = detail::ActivationAlong<detail::gated>;

/// max(0, x) + a * min(0, x), with a slope that is learned, one for all or one per channel.
class TENON_PUBLIC PReLU : public Module {
 public:
  explicit PReLU(std::int64_t num_parameters = 1, double init = 0.25, DType dtype = f32);
  Tensor forward(const Tensor& x) const;
  Tensor operator()(const Tensor& x) const { return forward(x); }
  Parameter weight;
};

}  // namespace tenon::TENON_INLINEv0::nn

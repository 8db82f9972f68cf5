#include <tenon/nn/activation.h>
#include <tenon/nn/init.h>
#include <tenon/nn/linear.h>

#include <cmath>

namespace tenon::TENON_INLINE v0::nn {

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool with_bias, DType dtype)
    : weight(add_parameter("weight", empty({out_features, in_features}, dtype))),
      bias(add_parameter("bias", with_bias ? empty({out_features}, dtype) : Tensor())) {
  init::kaiming_uniform_(weight, {.slope = std::sqrt(5.0)});
  double bound = in_features > 0 ? 1 / std::sqrt(static_cast<double>(in_features)) : 0;
  if (with_bias) init::uniform_(bias, -bound, bound);
}
Tensor Linear::forward(const Tensor& x) const {
  Scope scope(*this, x);
  return scope.result(linear(x, weight, bias));
}

Bilinear::Bilinear(std::int64_t in1, std::int64_t in2, std::int64_t out, bool with_bias, DType dtype)
    : weight(add_parameter("weight", empty({out, in1, in2}, dtype))),
      bias(add_parameter("bias", with_bias ? empty({out}, dtype) : Tensor())) {
  if (in1 < 1) throw Error(ErrorKind::call, "Bilinear: expected in1 of at least 1, got " + std::to_string(in1));
  double bound = 1 / std::sqrt(static_cast<double>(in1));
  init::uniform_(weight, -bound, bound);
  if (with_bias) init::uniform_(bias, -bound, bound);
}
Tensor Bilinear::forward(const Tensor& x1, const Tensor& x2) const {
  Scope scope(*this, x1, x2);
  return scope.result(bilinear(x1, x2, weight, bias));
}

Embedding::Embedding(std::int64_t count, std::int64_t size, const EmbeddingOptions& options)
    : weight(add_parameter("weight", empty({count, size}, options.dtype))), padding_(options.padding_idx.value_or(-1)) {
  if (options.padding_idx && (*options.padding_idx < -count || *options.padding_idx >= count))
    throw Error(ErrorKind::call, "Embedding: padding_idx " + std::to_string(*options.padding_idx) + " is no row of " +
                                     std::to_string(count));
  init::normal_(weight);
  if (!options.padding_idx) return;
  if (padding_ < 0) padding_ += count;
  NoGradGuard off;
  (*weight)[padding_].zero_();
}
Tensor Embedding::forward(const Tensor& indices) const {
  Scope scope(*this, indices);
  return scope.result(embedding(weight, indices, padding_));
}

Dropout::Dropout(double p) : p_(p) {
  if (!(p >= 0 && p <= 1)) throw Error(ErrorKind::call, "Dropout: expected a probability, got " + std::to_string(p));
}
Tensor Dropout::forward(const Tensor& x) const {
  Scope scope(*this, x);
  return scope.result(dropout(x, p_, is_training()));
}

PReLU::PReLU(std::int64_t num_parameters, double init, DType dtype)
    : weight(add_parameter("weight", full({num_parameters}, init, dtype))) {}
Tensor PReLU::forward(const Tensor& x) const {
  Scope scope(*this, x);
  return scope.result(prelu(x, weight));
}

}  // namespace tenon::TENON_INLINEv0::nn

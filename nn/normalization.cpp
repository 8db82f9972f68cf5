#include <tenon/nn/normalization.h>

namespace tenon::TENON_INLINE v0::nn {

detail::BatchNormalization::BatchNormalization(std::int64_t least_rank, std::int64_t most_rank, std::int64_t channels,
                                               const BatchNormOptions& options)
    : least_rank_(least_rank), most_rank_(most_rank), options_(options) {
  weight = add_parameter("weight", options.affine ? ones({channels}, options.dtype) : Tensor());
  bias = add_parameter("bias", options.affine ? zeros({channels}, options.dtype) : Tensor());
  bool tracks = options.track_running_stats;
  running_mean = add_buffer("running_mean", tracks ? zeros({channels}, options.dtype) : Tensor());
  running_var = add_buffer("running_var", tracks ? ones({channels}, options.dtype) : Tensor());
  num_batches_tracked = add_buffer("num_batches_tracked", tracks ? zeros({}, i64) : Tensor());
}

Tensor detail::BatchNormalization::forward(const Tensor& x) const {
  Scope scope(*this, x);
  if (x.dim() < least_rank_ || x.dim() > most_rank_)
    throw Error(ErrorKind::call, "BatchNorm: expected an input of " + std::to_string(most_rank_) +
                                     " dimensions, got one of " + std::to_string(x.dim()));
  bool tracks = running_mean.defined(), by_batch = is_training() || !tracks;
  double momentum = options_.momentum.value_or(0);
  if (is_training() && tracks) {
    NoGradGuard off;
    num_batches_tracked->add_(1);
    if (!options_.momentum) momentum = 1.0 / num_batches_tracked->item<double>();
  }
  return scope.result(batch_norm(x, weight, bias, running_mean, running_var, by_batch, momentum, options_.eps, true));
}

namespace {
void require_dimensions(const char* layer, const Extents& shape) {
  if (shape.each.empty())
    throw Error(ErrorKind::call, std::string(layer) + ": expected the sizes of the last dimensions, got an empty list");
}
}  // namespace

LayerNorm::LayerNorm(const Extents& normalized_shape, const LayerNormOptions& options)
    : shape_(normalized_shape), eps_(options.eps) {
  require_dimensions("LayerNorm", shape_);
  weight = add_parameter("weight", options.elementwise_affine ? ones(shape_, options.dtype) : Tensor());
  bias = add_parameter("bias", options.elementwise_affine && options.bias ? zeros(shape_, options.dtype) : Tensor());
}
Tensor LayerNorm::forward(const Tensor& x) const {
  Scope scope(*this, x);
  return scope.result(layer_norm(x, shape_, weight, bias, eps_));
}

GroupNorm::GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const GroupNormOptions& options)
    : groups_(num_groups), eps_(options.eps) {
  if (num_groups < 1 || num_channels % num_groups != 0)
    throw Error(ErrorKind::call, "GroupNorm: the " + std::to_string(num_channels) + " channels do not divide into " +
                                     std::to_string(num_groups) + " groups");
  weight = add_parameter("weight", options.affine ? ones({num_channels}, options.dtype) : Tensor());
  bias = add_parameter("bias", options.affine ? zeros({num_channels}, options.dtype) : Tensor());
}
Tensor GroupNorm::forward(const Tensor& x) const {
  Scope scope(*this, x);
  return scope.result(group_norm(x, groups_, weight, bias, eps_));
}

RMSNorm::RMSNorm(const Extents& normalized_shape, const RMSNormOptions& options)
    : shape_(normalized_shape), eps_(options.eps) {
  require_dimensions("RMSNorm", shape_);
  weight = add_parameter("weight", options.elementwise_affine ? ones(shape_, options.dtype) : Tensor());
}
Tensor RMSNorm::forward(const Tensor& x) const {
  Scope scope(*this, x);
  return scope.result(rms_norm(x, shape_, weight, eps_));
}

}  // namespace tenon::TENON_INLINEv0::nn

// Normalization by statistics of the batch, of the last dimensions, of groups of channels.
#pragma once
#include <tenon/nn/module.h>

#include <optional>

namespace tenon::TENON_INLINE v0::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // none: the running statistics are the average of all batches
  bool affine = true, track_running_stats = true;
  DType dtype = f32;
};

namespace detail {
class TENON_PUBLIC BatchNormalization : public Module {
 public:
  Tensor operator()(const Tensor& x) const { return forward(x); }
  Tensor forward(const Tensor& x) const;
  Parameter weight, bias, running_mean, running_var, num_batches_tracked;

 protected:
  BatchNormalization(std::int64_t least_rank, std::int64_t most_rank, std::int64_t channels,
                     const BatchNormOptions& options);

 private:
  std::int64_t least_rank_, most_rank_;
  BatchNormOptions options_;
};
template <std::int64_t least_rank, std::int64_t most_rank>
class BatchNorm : public BatchNormalization {
 public:
  explicit BatchNorm(std::int64_t channels, const BatchNormOptions& options = {})
      : BatchNormalization(least_rank, most_rank, channels, options) {}
};
}  // namespace detail

using BatchNorm1d = detail::BatchNorm<2, 3>;
using BatchNorm2d = detail::BatchNorm<4, 4>;
using BatchNorm3d = detail::BatchNorm<5, 5>;

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true, bias = true;
  DType dtype = f32;
};
class TENON_PUBLIC LayerNorm : public Module {
 public:
  explicit LayerNorm(const Extents& normalized_shape, const LayerNormOptions& options = {});
  Tensor operator()(const Tensor& x) const { return forward(x); }
  Tensor forward(const Tensor& x) const;
  Parameter weight, bias;

 private:
  Extents shape_;
  double eps_;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
  DType dtype = f32;
};
class TENON_PUBLIC GroupNorm : public Module {
 public:
  GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const GroupNormOptions& options = {});
  Tensor operator()(const Tensor& x) const { return forward(x); }
  Tensor forward(const Tensor& x) const;
  Parameter weight, bias;

 private:
  std::int64_t groups_;
  double eps_;
};

struct RMSNormOptions {
  std::optional<double> eps = std::nullopt;  // none: that of the dtype
  bool elementwise_affine = true;
  DType dtype = f32;
};
class TENON_PUBLIC RMSNorm : public Module {
 public:
  explicit RMSNorm(const Extents& normalized_shape, const RMSNormOptions& options = {});
  Tensor operator()(const Tensor& x) const { return forward(x); }
  Tensor forward(const Tensor& x) const;
  Parameter weight;

 private:
  Extents shape_;
  std::optional<double> eps_;
};

}  // namespace tenon::TENON_INLINEv0::nn

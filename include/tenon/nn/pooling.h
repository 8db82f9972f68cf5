// Pooling over one to three dimensions.
#pragma once
#include <tenon/nn/module.h>

#include <optional>

namespace tenon::TENON_INLINE v0::nn {

struct MaxPoolOptions {
  std::optional<Extents> stride = std::nullopt;  // none: the window's own sizes
  Extents padding = 0, dilation = 1;
  bool ceil_mode = false;
};
struct AvgPoolOptions {
  std::optional<Extents> stride = std::nullopt;
  Extents padding = 0;
  bool ceil_mode = false, count_include_pad = true;
};

namespace detail {
TENON_PUBLIC Tensor max_pool(std::size_t dims, const Tensor& x, const Extents& kernel, const MaxPoolOptions& options);
TENON_PUBLIC Tensor avg_pool(std::size_t dims, const Tensor& x, const Extents& kernel, const AvgPoolOptions& options);
TENON_PUBLIC Tensor adaptive_avg_pool(std::size_t dims, const Tensor& x, const Extents& sizes);
TENON_PUBLIC Tensor adaptive_max_pool(std::size_t dims, const Tensor& x, const Extents& sizes);

template <std::size_t dims, class Options, Tensor (*pool)(std::size_t, const Tensor&, const Extents&, const Options&)>
class Pool : public Module {
 public:
  explicit Pool(Extents kernel_size, Options options = {})
      : kernel_(std::move(kernel_size)), options_(std::move(options)) {}
  Tensor forward(const Tensor& x) const {
    Scope scope(*this, x);
    return scope.result(pool(dims, x, kernel_, options_));
  }
  Tensor operator()(const Tensor& x) const { return forward(x); }

 private:
  Extents kernel_;
  Options options_;
};
template <std::size_t dims, Tensor (*pool)(std::size_t, const Tensor&, const Extents&)>
class AdaptivePool : public Module {
 public:
  explicit AdaptivePool(Extents output_size) : sizes_(std::move(output_size)) {}
  Tensor forward(const Tensor& x) const {
    Scope scope(*this, x);
    return scope.result(pool(dims, x, sizes_));
  }
  Tensor operator()(const Tensor& x) const { return forward(x); }

 private:
  Extents sizes_;
};
}  // namespace detail

using MaxPool1d = detail::Pool<1, MaxPoolOptions, detail::max_pool>;
using MaxPool2d = detail::Pool<2, MaxPoolOptions, detail::max_pool>;
using MaxPool3d = detail::Pool<3, MaxPoolOptions, detail::max_pool>;
using AvgPool1d = detail::Pool<1, AvgPoolOptions, detail::avg_pool>;
using AvgPool2d = detail::Pool<2, AvgPoolOptions, detail::avg_pool>;
using AvgPool3d = detail::Pool<3, AvgPoolOptions, detail::avg_pool>;
using AdaptiveAvgPool1d = detail::AdaptivePool<1, detail::adaptive_avg_pool>;
using AdaptiveAvgPool2d = detail::AdaptivePool<2, detail::adaptive_avg_pool>;
using AdaptiveAvgPool3d = detail::AdaptivePool<3, detail::adaptive_avg_pool>;
using AdaptiveMaxPool1d = detail::AdaptivePool<1, detail::adaptive_max_pool>;
using AdaptiveMaxPool2d = detail::AdaptivePool<2, detail::adaptive_max_pool>;
using AdaptiveMaxPool3d = detail::AdaptivePool<3, detail::adaptive_max_pool>;

}  // namespace tenon::TENON_INLINEv0::nn

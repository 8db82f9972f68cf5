#include <tenon/nn/pooling.h>

namespace tenon::TENON_INLINE v0::nn::detail {
namespace {

IntList stride_of(const std::optional<Extents>& stride, const Extents& kernel) { return stride ? *stride : kernel; }

// One size stands for all; the adaptive operators want each.
std::vector<std::int64_t> each_of(const Extents& sizes, std::size_t dims) {
  return sizes.each.size() == 1 ? std::vector<std::int64_t>(dims, sizes.each[0]) : sizes.each;
}

}  // namespace

Tensor max_pool(std::size_t dims, const Tensor& x, const Extents& kernel, const MaxPoolOptions& o) {
  IntList stride = stride_of(o.stride, kernel);
  if (dims == 1) return max_pool1d(x, kernel, stride, o.padding, o.dilation, o.ceil_mode);
  if (dims == 2) return max_pool2d(x, kernel, stride, o.padding, o.dilation, o.ceil_mode);
  return max_pool3d(x, kernel, stride, o.padding, o.dilation, o.ceil_mode);
}
Tensor avg_pool(std::size_t dims, const Tensor& x, const Extents& kernel, const AvgPoolOptions& o) {
  IntList stride = stride_of(o.stride, kernel);
  if (dims == 1) return avg_pool1d(x, kernel, stride, o.padding, o.ceil_mode, o.count_include_pad);
  if (dims == 2) return avg_pool2d(x, kernel, stride, o.padding, o.ceil_mode, o.count_include_pad);
  return avg_pool3d(x, kernel, stride, o.padding, o.ceil_mode, o.count_include_pad);
}
Tensor adaptive_avg_pool(std::size_t dims, const Tensor& x, const Extents& sizes) {
  std::vector<std::int64_t> each = each_of(sizes, dims);
  if (dims == 1) return adaptive_avg_pool1d(x, each);
  if (dims == 2) return adaptive_avg_pool2d(x, each);
  return adaptive_avg_pool3d(x, each);
}
Tensor adaptive_max_pool(std::size_t dims, const Tensor& x, const Extents& sizes) {
  std::vector<std::int64_t> each = each_of(sizes, dims);
  if (dims == 1) return std::get<0>(adaptive_max_pool1d(x, each));
  if (dims == 2) return std::get<0>(adaptive_max_pool2d(x, each));
  return std::get<0>(adaptive_max_pool3d(x, each));
}

}  // namespace tenon::TENON_INLINEv0::nn::detail
